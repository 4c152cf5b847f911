"""Puts small mistakes into a copy of the package, one at a time, and says which of them the tests notice.

    python tests/mistakes.py [--only TEXT …] [--jobs N]

It is run by hand. First the tests of the table are played on an unchanged copy, where all of them must pass. `--only` takes the
mistakes whose file or words have one of these texts. The exit status is 1 where fewer than 95 of 100 are seen. `test_mistakes.py` checks that
the table goes with the source.
"""

import argparse
import re
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from helpers.copies import LONGEST, PACKAGE, ROOT, copied, kernels_for, on_copies, played, pytest_of

WANTED = 0.95  # share of the mistakes that must be seen


class Mistake(NamedTuple):
    """A slip in one file of the package."""

    file: str  # below mpi_compress/
    right: str  # the text as it stands, once in the file
    wrong: str  # the text with the mistake
    tests: str  # files or tests below tests/ that should notice, with blanks between them
    what: str  # what is wrong, in a few words


M = Mistake
CODECS, COMPRESSORS, COSTS = "messages/test_codecs.py::test_", "messages/test_compressors.py::test_", "messages/test_costs.py::test_"
EF, EF_PARTS, EF_THEORY = "algorithms/test_ef.py::test_", "algorithms/test_ef_parts.py::test_", "algorithms/test_ef_theory.py::test_"
LITERATURE = "algorithms/test_literature.py::test_"
SOME_WORKERS, LAZY, LOCAL = (f"algorithms/test_{name}.py::test_" for name in ("participation", "three_pc", "local_steps"))
GD, AIADE, KEYS = "algorithms/test_gd.py::test_", "algorithms/test_aiade.py::test_", "problem/test_keys.py::test_"
LOSSES, PENALTIES, RESULTS = "problem/test_losses.py::test_", "problem/test_penalties.py::test_", "results/test_results.py::test_"
CHECKPOINT, THEORY, CONSTANTS = "saving/test_checkpoint.py::test_", "engine/test_theory.py::test_", "preparing/test_constants.py::test_"
ROOM = "problem/test_gradient_room.py::test_"
VERDICTS, REPORT, CLI = "evidence/test_verdicts.py::test_", "report/test_report.py::test_", "cli/test_cli.py::test_"
QUEUE, REQUEUE, SLURM = "cluster/test_queue.py::test_", "cluster/test_requeue.py::test_", "cluster/test_slurm.py::test_"
PATIENCE, RANKS, LAYOUTS = "exchange/test_patience.py::test_", "exchange/test_ranks.py::test_", "engine/test_layouts.py::test_"
ROWS, BOUNDS, DEFAULTS, ADDRESSES = (f"oracles/test_{name}.py::test_" for name in ("rows_by_hand", "bounds_by_hand", "default_formulas", "addresses"))
LINKS, SEEDS, QUEUE_WORDS, EDGES = (f"oracles/test_{name}.py::test_" for name in ("links_by_hand", "seeds_by_hand", "queue_words", "edges_by_hand"))

MESSAGES = (
    M("messages/fields.py", ">= 1 << group", "> 1 << group", COSTS + "the_length_of_a_message_is_planned_to_the_byte", "a count of 128 is planned with one byte"),
    M("messages/codecs/bitmap.py", "def planned_set_bytes(self, T: Any, dim: int) -> Any:\n        return (dim + 7) // 8", "def planned_set_bytes(self, T: Any, dim: int) -> Any:\n        return dim // 8", CODECS + "a_codec_knows_the_length_of_a_set", "the last byte of a bitmap is not counted"),
    M("messages/fields.py", 'np.packbits(negative, bitorder="little")', "np.packbits(negative)", CODECS + "what_is_decoded_is_what_was_encoded_and_two_in_a_row_too[32-13-bitmap]", "signs are written highest bit first and read lowest bit first"),
    M("messages/codecs/auto.py", "if kind in (Sparse, Dense):", "if kind is Sparse:", "messages/test_link.py::test_a_sparse_mean_goes_through_a_dense_link", "a sparse vector is read as a dense one where dense ones are expected"),
    M("messages/codecs/lattice.py", "radius = fields.rounded_up(radius, self.float_format)", "pass", CODECS + "a_radius_is_rounded_up_so_that_it_still_bounds_the_vector", "a radius is rounded to the nearest float, below the vector's norm"),
    M("messages/codecs/base.py", 'self.indices == "counted")', 'self.indices == "free")', CODECS + "paper_bits_follow_the_codecs_settings", "indices are counted where they are free"),
    M("messages/compressors/random_k.py", "if self.scaled else values)", "if not self.scaled else values)", COMPRESSORS + "unbiased_compressors_have_the_vector_as_mean", "values are scaled where they should not be"),
    M("messages/compressors/hard_threshold.py", "sqrt(self.accuracy / dim) / step)", "sqrt(self.accuracy / dim) * step)", COMPRESSORS + "hard_threshold_follows_from_the_accuracy_and_the_step_of_madelon", "times the step in place of divided by it"),
    M("messages/compressors/base.py", "return max(1, round(share(k) * dim))", "return round(share(k) * dim)", COMPRESSORS + "a_percentage_is_of_the_dimension", "a small percentage sends nothing"),
    M("messages/compressors/sq.py", "size_of(v).norm)", "size_of(v).peak)", COMPRESSORS + "sq_sends_the_norm_of_the_whole_vector_with_the_signs_of_the_largest", "the largest magnitude in place of the norm"),
    M("messages/compressors/gspar.py", "v[drawn] < 0", "v[drawn] > 0", COMPRESSORS + "unbiased_compressors_have_the_vector_as_mean", "the signs of drawn coordinates are turned"),
    M("messages/compressors/qsgd.py", 'return {"bucket": self._bucket(dim)}', 'return {"bucket": dim}', COMPRESSORS + "what_a_compressor_makes_goes_through_the_codec_that_its_paper_counts", "receivers take one bucket for all coordinates"),
)

LINKS_AND_COSTS = (
    M("messages/costs/packet.py", "np.ceil(", "np.floor(", COSTS + "payload_affine_and_packet_costs_are_those_computed_by_hand", "the last packet, which is not full, costs nothing"),
    M("messages/costs/udp_ethernet.py", "np.maximum(1.0, np.ceil(payload / _PAYLOAD))", "np.ceil(payload / _PAYLOAD)", COSTS + "payload_affine_and_packet_costs_are_those_computed_by_hand", "an empty message needs no packet"),
    M("messages/costs/ieee802154.py", "8.0 * (_LARGEST_PACKET - self.overhead)", "8.0 * _LARGEST_PACKET", COSTS + "payload_affine_and_packet_costs_are_those_computed_by_hand", "the overhead takes no room in a packet"),
    M("messages/costs/table.py", " + c1 * np.maximum(0.0, payload - bits[-1])", "", COSTS + "a_table_costs_what_was_measured_and_never_falls", "costs stay the same beyond the last point"),
    M("messages/costs/table.py", "(bits, np.maximum.accumulate(seconds))", "(bits, seconds)", COSTS + "a_table_costs_what_was_measured_and_never_falls", "a larger message may cost less"),
    M("messages/link.py", "return 8 * (LENGTH_BYTES + self.data.size)", "return 8 * self.data.size", GD + "with_the_identity_messages_cost_what_they_hold", "the length ahead of a message is not counted"),
    M("messages/link.py", "None if length is None else 8 * (LENGTH_BYTES + length)", "None if length is None else LENGTH_BYTES + length", COSTS + "the_length_of_a_message_is_planned_to_the_byte", "bytes are planned as bits"),
    M("messages/link.py", "if end != message.data.size:", "if end > message.data.size:", "messages/test_link.py::test_bytes_left_over_are_refused", "bytes left over after a message are ignored"),
    M("messages/link.py", "(self.codec.float), self.dim)", "(64), self.dim)", "messages/test_link.py", "whole vectors are sent in 64 bits whatever the link has"),
    M("messages/mean.py", "sums[i] / divisor", "sums[i] / len(parts)", "messages/test_mean.py", "the mean is over those who sent something"),
    M("messages/mean.py", "if dim != self.dim:", "if dim > self.dim:", "messages/test_mean.py", "the mean of shorter vectors keeps the former length"),
)

ALGORITHMS = (
    M("algorithms/estimators/ef21.py", '"1/(L + prox*L_rms*sqrt', '"1/(L + prox*L*sqrt', DEFAULTS + "a_default_is_what_its_theorem_gives", "L in place of L_rms in the default step"),
    M("algorithms/estimators/ef21.py", "c.add_to(e, -1.0)", "c.add_to(e, -0.9)", LITERATURE + "econtrol_keeps_in_its_errors_what_it_has_not_sent", "a part of what was sent stays in the error"),
    M("algorithms/estimators/dasha.py", "- float(self.a) * (", "+ float(self.a) * (", LITERATURE + "iterates_are_those_of_a_plain_loop", "what everyone believes is driven away from the estimate"),
    M("algorithms/estimators/dasha.py", "(self.setting.n / self.setting.r) * k", "k", LITERATURE + "with_some_of_the_workers_iterates_are_those_of_a_plain_loop", "those who take part do not speak for the others"),
    M("algorithms/product.py", "node.known.batches += not node.known.full", "node.known.batches += 1", LITERATURE + "iterates_are_those_of_a_plain_loop", "full rounds count as minibatches"),
    M("algorithms/steps.py", "return named - {THEORY} | names_in(theory)", "return named | names_in(theory) if False else named", LITERATURE + "the_theorems_step_needs_what_its_formula_names", "what the theorem's step needs is not computed"),
    M("algorithms/estimators/diana.py", "mean.add_to(memory.h, float(self.alpha))", "mean.add_to(memory.h)", "algorithms/test_products.py::test_without_loss_every_estimator_is_gradient_descent_with_that_server_and_downlink", "the mean shift moves without α"),
    M("algorithms/estimators/marina.py", "worker.before[:] = g", "worker.before = g", "algorithms/test_products.py::test_without_loss_every_estimator_is_gradient_descent_with_that_server_and_downlink", "the gradient before is the buffer of the next one"),
    M("algorithms/sampling.py", "return δ * (r / n)", "return δ", SOME_WORKERS + "ef21_of_some_workers_keeps_its_theorem", "the step of EF21 does not know that workers sleep"),
    M("algorithms/sampling.py", " + (n - r) / (r * max(n - 1, 1))", "", SOME_WORKERS + "what_a_draw_makes_of_a_compressor", "draws without replacement are taken for independent ones"),
    M("algorithms/hosted.py", "if i in awake else SILENT", "if i in awake or i == 0 else SILENT", SOME_WORKERS + "those_who_sleep_send_nothing_and_do_not_compute", "worker 0 never sleeps"),
    M("algorithms/hosted.py", "setting.r == setting.n or self.algorithm.needs_all(node, k)", "setting.r == setting.n", SOME_WORKERS + "a_round_that_needs_all_workers_has_them", "workers sleep in rounds that need all of them"),
    M("algorithms/estimators/diana.py", " * (self.setting.n / self.setting.r)", "", SOME_WORKERS + "diana_of_some_workers_is_a_plain_loop", "the shifts of workers that were drawn move too little"),
    M("algorithms/estimators/three_pc.py", "        worker.y[:] = g\n", "", LAZY + "iterates_are_those_of_a_plain_loop", "the gradient before stays that of the start"),
    M("algorithms/estimators/three_pc.py", "squared_norm(D) <= tolerance", "squared_norm(D) < tolerance", LAZY + "who_has_nothing_to_add_is_silent", "who has nothing to add sends it"),
    M("algorithms/estimators/three_pc.py", "if lost[k] <= tolerance), self.counts[-1])", "if lost[k] <= tolerance), self.counts[0])", LAZY + "iterates_are_those_of_a_plain_loop", "the coarsest level in place of the finest"),
    M("algorithms/estimators/local_sgd.py", "t.k * τ + j", "t.k", LOCAL + "each_local_step_has_a_minibatch_of_its_own", "all local steps of a round see one minibatch"),
    M("algorithms/papers/scaffnew.py", "(float(self.p) / self.gamma(t.k)) * (z - worker.x)", "(1 / self.gamma(t.k)) * (z - worker.x)", LOCAL + "scaffnew_is_its_plain_loop", "the shifts move without p"),
    M("algorithms/papers/locodl.py", "add_to(worker.u, -self.σ)", "add_to(worker.u, self.σ)", LOCAL + "locodl_keeps_its_rate", "the sign of d_i is turned"),
    M("algorithms/papers/adiana.py", "if node.is_new else node.w", "if node.is_new else y", "algorithms/test_adiana.py::test_iterates_are_those_of_a_plain_loop", "the reference point follows the iterate"),
    M("algorithms/estimators/power_sgd.py", "node.memory.Q if self.warm_start and t.k else", "node.memory.Q if self.warm_start else", "algorithms/test_power_sgd.py", "Q starts at 0"),
    M("algorithms/estimators/power_sgd.py", "M -= left @ right.T", "M += left @ right.T", "algorithms/test_power_sgd.py", "the error grows by what was sent"),
    M("algorithms/smoothness.py", "master.S = np.array(", "master.S = np.flip(", "algorithms/test_smoothness.py::test_diana_plus_is_a_plain_loop", "the matrices of other workers"),
    M("algorithms/smoothness.py", "L.S = self._as_matrix(self.roots.unpack(message))", "L.S = self._as_matrix(Dense(root_of(f, self.matrix)))", "algorithms/test_smoothness.py::test_round_0_sends_the_root_in_the_floats_of_the_codec", "a worker's matrix is not the one that was sent"),
    M("problem/second_order.py", "total += sizes.T @ np.ravel(sizes.sum(axis=1))", "total += np.ravel(sizes.sum(axis=0))", "algorithms/test_smoothness.py::test_diana_plus_is_a_plain_loop", "a diagonal that is not above L_i"),
    M("messages/several.py", "return added(link.paper_bits(part) for link, part in zip(self.parts, content.parts, strict=True))", "return self.parts[0].paper_bits(content.parts[0])", "algorithms/test_adiana.py::test_a_message_holds_two_vectors_and_counts_both", "the second vector is not counted"),
    M("algorithms/servers/nesterov.py", "if µ else k / (k + 3)", "if µ else k / (k + 2)", ROWS + "the_momentum_of_nesterov_is_that_of_l_and_mu", "another momentum where µ = 0"),
    M("algorithms/parts.py", "self.ratio = 1.0 + self.ratio * ratio", "self.ratio = 1.0 + self.ratio / ratio", EF_PARTS + "the_point_to_evaluate_is_the_weighted_mean_of_all_iterates", "the weights' ratio is turned over"),
    M("algorithms/steps.py", "bisect.bisect_right(self.rounds", "bisect.bisect_left(self.rounds", EF_PARTS + "steps_as_jobs_write_them", "a step changes one round late"),
    M("algorithms/sampling.py", "held is None or held[0] != chapter", "held is None", EF_PARTS + "rows_depend_on_their_address_alone", "the rows that were drawn first are used in all epochs"),
    M("algorithms/estimators/sgd.py", "return k - k // (self.steps + 1) - 1", "return k", AIADE + "an_epoch_of_svrg_sees_every_row_once_whatever_its_full_rounds", "full rounds count as minibatches"),
    M("algorithms/estimators/ef.py", "(k + 1) % self.reset == 0", "k % self.reset == 0", EF + "errors_are_dropped_in_the_rounds_that_reset_names", "errors are dropped one round early"),
    M("algorithms/servers/heavy_ball.py", "        s.m *= self.beta\n        for term in g:\n            add(s.m, term)\n", "        for term in g:\n            add(s.m, term)\n        s.m *= self.beta\n", EF + "trajectories_on_madelon_equal_a_plain_implementation", "what was just heard is damped, too"),
    M("algorithms/downlinks/double_squeeze.py", "m.down.unpack(q).add_to(master.e, -1.0)", "m.down.unpack(q).add_to(master.e, -0.5)", "algorithms/test_products.py::test_a_product_is_its_plain_loop", "the master keeps half of what it has sent"),
    M("algorithms/downlinks/ef21_p.py", "dense(master.moved.point)", "dense(master.moved.x)", "algorithms/test_products.py::test_a_product_is_its_plain_loop", "the iterate goes down, and not the point of the gradients"),
    M("algorithms/downlinks/marina_p.py", "v = x if node.full else x - before", "v = x if node.full else before - x", "algorithms/test_products.py::test_a_product_is_its_plain_loop", "differences go down with the other sign"),
    M("algorithms/estimators/ef.py", "            self.accumulated = np.zeros_like(self.accumulated)\n", "", EF_PARTS + "a_regime_compares_one_epoch_with_another", "the sum of an epoch is not begun again"),
    M("algorithms/papers/iade.py", "return self.s * self.c ** (k + 1) / (k + 1)", "return self.s * self.c ** (k + 1) / (k + 2)", AIADE + "trajectories_are_those_of_a_plain_implementation", "the budget of the next round"),
    M("algorithms/error_memory.py", "self.e *= self.step / step", "self.e *= step / self.step", EF_THEORY + "what_was_sent_and_what_is_kept_add_up_to_the_gradients " + EF_THEORY + "decreasing_steps_with_linear_weights_reach_the_optimum_whatever_the_threshold", "the error is rescaled the wrong way where the step changes"),
)

ENGINE = (
    M("engine/counting.py", "self.cost_down += to_each * cost.of", "self.cost_down += cost.of", GD + "with_the_identity_messages_cost_what_they_hold", "the master's message costs as if one worker heard it"),
    M("engine/evaluation.py", "loss += 0.5 * self.regularizer * squared_norm(x)", "loss += self.regularizer * squared_norm(x)", GD + "regulariser_at_the_master_is_the_same_method", "twice the regulariser in the loss"),
    M("engine/observer.py", "own >= float(budget)", "own > float(budget)", GD + "stops_at_the_first_round_that_meets", "a run goes on where its bits are spent"),
    M("engine/observer.py", "stop.diverged * max(c.first_loss, 1.0)", "stop.diverged * c.first_loss", "engine/test_diverged.py::test_a_start_near_0_does_not_make_a_small_loss_an_explosion", "a run that begins near 0 has diverged soon"),
    M("saving/checkpoint.py", "                os.fsync(out.fileno())\n", "", CHECKPOINT + "a_checkpoint_is_on_the_disk_before_it_takes_its_name", "a checkpoint is renamed before it is on the disk"),
    M("engine/keeper.py", "f.samples, f.seconds, f.borrowed = saved.samples, saved.seconds, saved.borrowed", "f.seconds, f.borrowed = saved.seconds, saved.borrowed", CHECKPOINT + "rows_written_after_the_last_checkpoint_are_cut_when_a_killed_run_goes_on", "the epochs of a resumed run begin again"),
    M("engine/keeper.py", "        exchange.bytes_received_up = header.received\n", "", CHECKPOINT + "rows_written_after_the_last_checkpoint_are_cut_when_a_killed_run_goes_on", "bytes received before an interruption are forgotten"),
    M("guard/verbs.py", "np.shape(given) == (len(logs),)", "np.shape(given) != ()", "guard/test_own_parts.py::test_what_is_wrong_is_refused_before_or_in_the_rounds", "more logs than names are let through"),
    M("guard/verbs.py", "compressor.has_state and (complaint := unsavable(state))", "(complaint := \"\")", "guard/test_own_parts.py::test_what_is_wrong_is_refused_before_or_in_the_rounds", "a compressor's state is not tried out"),
    M("preparing/shapes.py", 'item = 4 if dtype == "float32" else 8', 'item = 8 if dtype == "float32" else 4', "preparing/test_memory_needs.py", "4 bytes for float64"),
    M("preparing/problems.py", "math.sqrt(added(L * L for L in each) / n)", "sum(each) / n", CONSTANTS + "what_formulas_name_is_what_its_definition_says", "L_rms is the mean"),
    M("engine/theory.py", "sampling_noise(f, x) / algorithm.batch", "sampling_noise(f, x)", THEORY + "the_variance_of_a_minibatch_falls_with_its_rows", "the noise of one row for any minibatch"),
    M("engine/tuning.py", "best = min(ranked)[-1]", "best = max(ranked)[-1]", "algorithms/test_gspar.py::test_a_tuned_run_has_the_value_whose_trial_came_furthest", "the worst trial wins"),
    M("engine/watching.py", 'return has_all and attrs.get("until", "") in ("", mark_of(self.until))', "return has_all", "engine/test_from_python.py::test_until_ends_a_run_as_complete_and_its_result_is_that_of_no_other_call", "a result that another `until` ended is taken"),
    M("engine/fast/errors.py", "if γ != worker.step:", "if γ > worker.step:", "engine/fast/test_ways.py::test_hosted_workers_send_and_remember_what_they_would_one_by_one", "errors are not rescaled where the step falls"),
    M("engine/fast/gradients.py", "            self._gradients += f.penalty.gradient(x)\n", "", "engine/fast/test_gradients.py::test_gradients_by_one_call_hold_a_smooth_penalty", "gradients of all together lack the penalty"),
)

EXCHANGE = (
    M("exchange/mpi.py", "everything.size - mine.size", "everything.size", LAYOUTS + "bytes_received_from_other_ranks_are_those_logged_for_their_workers", "a rank receives its own bytes, too"),
    M("exchange/patience.py", "which = f\"rank {ranks[0]} has\"", "which = f\"rank {len(ranks)} has\"", PATIENCE + "a_rank_that_hangs_is_named_and_what_was_saved_goes_on_to_the_same_bytes", "the number of ranks in place of the rank"),
    M("exchange/ranks.py", "raise SharedUserError(*result.args)", "raise UserError(*result.args)", "cli/test_bad_input.py::test_on_three_ranks_all_learn_of_it_from_rank_0", "every rank reports what is wrong"),
    M("exchange/ranks.py", 'master == "worker", patience, self._channel.bell)', 'master == "worker", 0.0, self._channel.bell)', PATIENCE + "every_exchange_gets_the_patience_of_the_job", "ranks wait for ever"),
)

PROBLEM = (
    M("problem/losses/huber.py", "slopes * (r - 0.5 * slopes)", "0.5 * slopes * r", LOSSES + "value_is_the_formula_for_any_margin", "the linear part is too low"),
    M("problem/losses/squared_hinge.py", "curvature = 2.0", "curvature = 1.0", LOSSES + "curvature_is_the_second_derivative_and_stays_under_its_bound", "half of the curvature"),
    M("problem/models/softmax.py", " + self.curvature * self.bias", "", "problem/test_models.py::test_the_smoothness_of_softmax_counts_its_bias", "the bias has no curvature"),
    M("problem/partitions/orders.py", "default_rng([seed, labels.size])", "default_rng([0, labels.size])", "problem/test_splits.py::test_other_seeds_deal_otherwise", "all seeds deal alike"),
    M("problem/partitions/split.py", 'text += f" by {self.seed}" if part.drawn else ""', 'text += " by seed" if part.drawn else ""', "problem/test_keys.py problem/test_splits.py", "one seed's rows serve another seed"),
    M("problem/optimum/__init__.py", "-{float(mu).hex()}.h5", ".h5", KEYS + "an_optimum_is_that_of_its_loss_its_mu_and_its_start", "one µ's optimum serves another µ"),
    M("problem/constants.py", "noise / (batch or 1)", "noise", EF_PARTS + "the_noise_that_settles_a_threshold_is_that_of_the_gradients_at_the_start", "the noise of one row for any minibatch"),
    M("problem/constants.py", ".max().item() * weight * len(s)) for s", ".max().item() * weight) for s", CONSTANTS + "what_formulas_name_is_what_its_definition_says", "L_row without the rows of a shard"),
    M("problem/datasets/store.py", "table.dtype, table.rows, table.known_dim, split.key", "table.dtype, table.known_dim, split.key", KEYS + "each_setting_of_the_data_has_a_file_of_its_own", "the number of rows is left out of the cache's key"),
    M("problem/points.py", "self._x = self._point = None", "pass", ROOM + "points_are_compared_once_and_an_iterate_that_stands_still_is_copied_once", "an iterate stands still for ever"),
    M("problem/gradient_room.py", "self._whose[0] is not of or self._whose[1] is not point", "self._whose[1] is not point", ROOM + "any_order_of_sparse_and_dense_points_gives_the_bits_of_dense_additions", "a worker gets the gradient of another"),
    M("problem/gradient_room.py", "self._is_dirty, self._whose = not is_sparse, (of, point)", "self._is_dirty, self._whose = False, (of, point)", ROOM + "any_order_of_sparse_and_dense_points_gives_the_bits_of_dense_additions", "a dense µx stays"),
    M("engine/evaluation.py", "np.maximum(self.numbers[:n], numbers[:n], out=self.numbers[:n])", "pass", "engine/test_reports.py", "the first worker's seconds are the largest"),
    M("problem/points.py", "return cls(x.copy())", "return cls(x)", LOSSES + "an_evaluation_is_found_again_at_an_equal_point_and_at_no_other", "what is kept belongs to a point that moves on"),
)

JOB = (
    M("job/runs.py", "self.down.compressor, self.down.codec)", "self.down.compressor)", KEYS + "the_source_of_a_codec_counts_in_either_direction", "the source of a codec down does not count"),
    M("job/runs.py", "            others.append(hashlib.sha256(x.tobytes()).hexdigest())\n", "            pass\n", "job/test_job.py::test_what_the_files_of_a_run_hold_decides_its_id", "another start is the same run"),
    M("job/runs.py", '("exchange", "master", "patience")', '("exchange", "master")', PATIENCE + "patience_is_a_time_and_no_part_of_a_run", "patience makes another run"),
    M("job/tuning.py", '{} if seed is None else {"seed": seed}', '{"seed": seed} if seed else {}', "algorithms/test_gspar.py::test_a_tuned_run_has_the_value_whose_trial_came_furthest", "a tune seed of 0 is not taken"),
    M("job/claims.py", "bounds[0] <= value <= bounds[1]", "bounds[0] < value < bounds[1]", VERDICTS + "a_condition_is_met_by_its_bounds_and_never_by_nan", "the ends of a range do not count"),
    M("job/dotted.py", ' if key != "seed")', ")", "job/test_job.py::test_a_grid_multiplies_the_runs", "seeds are part of labels"),
)

RESULTS_OF_RUNS = (
    M("results/writer.py", "self._written += len(self._rows)", "self._written = len(self._rows)", CHECKPOINT + "rows_written_after_the_last_checkpoint_are_cut_when_a_killed_run_goes_on", "a mark has the rows of the last flush alone"),
    M("results/writer.py", "            self._close_sealed()\n            sync(self.part)\n", "            self._close_sealed()\n", RESULTS + "a_result_is_on_the_disk_before_it_takes_its_name", "a result is renamed before it is on the disk"),
    M("results/reader.py", "name: column[:n] for", "name: column for", RESULTS + "rows_that_are_half_flushed_are_left_out", "rows of which some columns are missing are read"),
    M("results/reader.py", 'for name in ("x", "x_star")', 'for name in ("x_star",)', RESULTS + "a_value_changed_in_any_dataset_is_one_line_that_names_it", "the last point is not compared with its checksum"),
    M("results/columns.py", '/ np.diff(run.trace["round"])', "", RESULTS + "bits_a_coordinate_are_of_one_message_however_often_rows_are_logged", "bits of all rounds between two rows"),
    M("results/files.py", "return next(whole, None) or next(begun, files[0])", "return next(begun, None) or next(whole, files[0])", "results/test_files.py::test_a_result_is_where_it_is_whole_then_where_it_was_begun_then_where_it_goes", "what was begun goes before what is whole"),
)

PICTURES = (
    M("results/targets.py", "float(column[row])", "float(column[-1])", VERDICTS + "a_column_is_its_last_entry_or_that_where_a_level_is_reached", "the last row, not the first below a level"),
    M("evidence/lines.py", "np.median(ys, axis=0), np.min(ys, axis=0), np.max(ys, axis=0))", "np.mean(ys, axis=0), np.min(ys, axis=0), np.max(ys, axis=0))", "evidence/test_lines.py::test_a_line_of_seeds_is_their_median_and_range_row_by_row figures/test_figures.py::test_seeds_are_one_line_in_a_band", "the mean over seeds under the name of the median"),
    M("figures/style.py", '"mm": 1 / 25.4', '"mm": 1 / 2.54', "figures/test_pictures.py::test_a_width_is_read_in_its_unit", "millimetres are taken for centimetres"),
    M("evidence/verdicts.py", "float(np.median(self.values))", "float(np.mean(self.values))", VERDICTS + "a_claim_is_judged_by_the_median_over_unequal_seeds", "a claim is judged by the mean"),
    M("results/targets.py", "-sign * np.asarray(levels, dtype=float))", "-sign * np.asarray(levels, dtype=float), \"right\")", REPORT + "a_level_that_is_met_exactly_is_reached", "a row exactly at a level has not reached it"),
    M("evidence/verdicts.py", "if self.untested or math.isnan(self.median):", "if self.untested:", VERDICTS + "a_value_that_is_no_number_is_no_verdict", "no number is a verdict"),
    M("evidence/answers.py", "return float(run.column(q.name)[-1]), math.inf", "return answer, answer", VERDICTS + "a_run_that_is_cut_off_decides_only_what_its_further_rounds_cannot_change", "a run that was cut off counts as one that never comes down"),
    M("evidence/sentences.py", 'if tested - {"holds"} and "holds" in tested:', "if False:", "evidence/test_sentences.py", "a sentence holds if one of its rows does"),
    M("evidence/outcomes.py", "(n := counts[outcome])", "(n := counts.total())", REPORT + "the_summary_counts_sentences_and_all_rows", "claims of other outcomes are counted too"),
    M("report/series.py", '.replace("<", "\\\\u003c")', "", REPORT + "what_users_write_is_text_on_the_page_and_in_its_data", "a label can end the page's script"),
)

CLUSTER = (
    M("cluster/batch.py", "task == ranges[-1][-1] + 1", "task == ranges[-1][0] + 1", QUEUE + "tasks_are_written_as_the_ranges_that_sbatch_takes", "ranges of tasks end after two"),
    M("cluster/task.sh", "RUNNING*|*TimeLimit*) again=yes", "RUNNING*|CANCELLED*|*TimeLimit*) again=yes", REQUEUE + "a_cancelled_task_does_not_queue_itself_again", "a cancelled task comes back"),
    M("cluster/task.sh", "[ $status -eq @stopped@ ]", "[ $status -ne 0 ]", REQUEUE + "what_is_done_or_failed_is_not_queued_again", "what failed is queued again"),
    M("cluster/batch.py", 'time_of(options.time, "--time", 60.0)', 'time_of(options.time, "--time")', "cluster/test_slurm.py", "seconds in place of SLURM's minutes"),
    M("cluster/notes.py", "return {array.first + task:", "return {task:", "cluster/test_queue.py", "the second array's runs are numbered from 0"),
    M("cluster/submission.py", "max(spec.workers.count for spec in self.job.runs) + 1", "max(spec.workers.count for spec in self.job.runs)", SLURM + "a_rank_for_each_worker_and_the_master_unless_asked_otherwise_and_only_what_is_asked", "no rank for the master"),
)

PLANNING = (
    M("planning/estimates.py", "shape.nonzeros / usual.nonzeros", "usual.nonzeros / shape.nonzeros", "planning/test_estimates.py::test_time_follows_from_the_rounds_at_the_usual_size_and_what_is_done_takes_nothing", "a larger set takes less time"),
    M("planning/estimates.py", "left[s.run_id] * measured", "(s.stop.rounds or 0) + measured", "planning/test_estimates.py::test_time_follows_from_the_rounds_at_the_usual_size_and_what_is_done_takes_nothing", "a round's time is added to the rounds"),
)

COMMANDS = (
    M("cli/check.py", "v.holds is False", "not v.holds", VERDICTS + "the_command_prints_each_claim_and_ends_with_1_where_one_fails", "a claim without results counts as failed"),
    M("cli/run.py", '("complete", "stopped")', '("complete", "stopped", "diverged")', "cli/test_bad_input.py::test_divergence_ends_its_run_and_no_other", "a run that diverged ends with status 0"),
    M("cli/plan.py", "memory_needs.text(spec, options.ranks, shapes)", "memory_needs.text(spec, None, shapes)", CLI + "plan_counts_the_memory_of_as_many_ranks_as_are_asked_for", "--ranks is ignored"),
    M("cli/show.py", '/ run.attrs["n_workers"]\n    yield "sent', '\n    yield "sent', CLI + "show_prints_the_coordinates_of_one_message", "coordinates of all workers under the name of one"),
    M("cli/reproduce.py", "return EXIT_FAILED if failed else 0", "return 0", REPORT + "reproduce_runs_what_is_not_done_and_one_failure_stops_no_other", "a job that failed leaves status 0"),
)

CORE = (
    M("core/expressions.py", '"KiB": 8 * 2**10', '"KiB": 8e3', "core/test_expressions.py::test_sizes_are_in_bits", "a KiB of 1000 bytes"),
    M("core/streams.py", "np.array([0, k, who, role]", "np.array([0, k, role, who]", ADDRESSES + "a_stream_is_philox_with_the_seed_as_key_and_the_address_as_counter", "roles and workers change places in an address"),
    M("core/streams.py", "if self.at + n <= self._words.size else 0", "if self.at + n < self._words.size else 0", "core/test_streams.py::test_a_pool_is_read_to_its_last_word", "the last number of a pool is never used"),
    M("core/signals.py", "BEGUN + limit", "limit", "core/test_signals.py", "a time limit counts from the start of the machine"),
    M("core/arrays.py", "array[0] >= 0 and array[-1] < dim", "array[0] >= 0 and array[-1] <= dim", "messages/test_kinds.py::test_checked_sorts_or_refuses_index_sets", "the index d is let through"),
    M("core/progress.py", "bits /= 1000", "bits /= 1024", "core/test_progress.py", "a kbit of 1024 bits"),
)

KERNELS = (
    M("kernels/losses.py", "(short - 0.5, -y)", "(short, -y)", LOSSES + "value_is_the_formula_for_any_margin", "the smooth hinge jumps"),
    M("kernels/vectors.py", "return peak * np.sqrt(total)", "return np.sqrt(total)", "messages/test_kinds.py::test_a_squared_norm_that_overflows_is_infinite", "the norm of a very long vector is that of its shares"),
    M("kernels/threshold.py", "n += u(not abs(v[j]) < threshold)", "n += u(abs(v[j]) >= threshold)", COMPRESSORS + "what_is_not_finite_is_passed_on", "NaN among the last coordinates is lost"),
    M("kernels/feedback.py", "a = v[i]\n        b = a - values[j]", "a = v[j]\n        b = a - values[j]", "kernels/test_feedback_kernels.py", "the place in the message for the coordinate"),
    M("kernels/vectors.py", "        seen[i] = False\n", "", "messages/test_mean.py::test_means_that_follow_each_other_hold_the_same_coordinates", "coordinates of the mean before are left out"),
)

ONCE_UNSEEN = (  # the suite did not notice these for long
    M("engine/evaluation.py", "(x - r.prox(x - γ * gradient, γ)) / γ", "x - r.prox(x - γ * gradient, γ)", ROWS + "beside_a_penalty_that_is_not_smooth_the_gradient_norm_is_that_of_the_mapping_with_step_1_over_l", "the gradient mapping is not divided by its step"),
    M("engine/observer.py", "self.log.corrects and not self.counters.wire_bits_up", "self.log.corrects", ROWS + "whole_gradients_are_free_in_round_0_alone", "all whole gradients are free"),
    M("engine/counting.py", "clocked.at(self.model_seconds, i)", "clocked.at(0.0, i)", LINKS + "every_message_costs_what_its_own_link_costs_at_the_second_in_which_its_round_began", "links stay as they are at second 0"),
    M("engine/counting.py", "cost.at(self.model_seconds, j).of", "cost.at(self.model_seconds, 0).of", LINKS + "messages_to_each_worker_cost_what_its_own_link_costs", "all workers hear by the link of worker 0"),
    M("engine/answers.py", "state=state, second=self.second)", "state=state)", LINKS + "workers_and_the_master_are_told_the_second_in_which_their_round_began", "the master plans for second 0"),
    M("preparing/problems.py", "return x0 + spec.start.offset", "return x0", ADDRESSES + "a_random_start_is_scale_times_normal_numbers_and_the_offset_is_added_to_every_start", "the offset of the start is ignored"),
    M("results/bounds.py", "plain += L / mu * math.log(2) if self.stochastic and mu > 0 else 0.0", "plain += 0.0", BOUNDS + "the_right_half_of_table_1", "table 1 without its log 2"),
    M("results/bounds.py", "2 * L * self.start / eps", "L * self.start / eps", BOUNDS + "the_left_half_of_table_1", "half of a bound of table 1"),
    M("results/bounds.py", 'trace["grad_norm"][0] ** 2', 'trace["grad_norm"][1] ** 2', EDGES + "table_1_is_shown_for_powers_of_ten_below_the_first_square_of_the_gradient_that_were_reached", "levels begin at the second row"),
    M("engine/theory.py", "8 * (LENGTH_BYTES + planned)", "8 * planned", ROWS + "the_wire_model_prices_the_length_and_all_that_a_codec_writes", "the length of a message is not priced"),
    M("algorithms/papers/iade.py", "self.s * self.c1 ** (k + 1) / 2)", "self.s * self.c1 ** (k + 1))", BOUNDS + "the_precision_of_iade_sgd_is_half_of_its_bound_on_the_square", "the whole budget for one direction"),
    M("algorithms/double_encoding.py", "node.past.moved, 3)", "node.past.moved, 2)", BOUNDS + "a_range_that_both_ends_know_is_what_the_gradient_moved_and_one_or_three_precisions", "a range of 2σ in place of 3σ"),
    M("algorithms/double_encoding.py", "self.budget(k - 1) if k", "self.budget(k) if k", EDGES + "the_gap_of_double_encoding_is_what_the_direction_is_off_over_what_it_may_be", "the gap over the next budget"),
    M("algorithms/estimators/kimad.py", "(cost.computing(f.rows.nonzeros) if isinstance(cost, Clocked) else 0.0)", "0.0", LINKS + "kimad_leaves_a_gradient_its_time", "gradients take no time of the deadline"),
    M("algorithms/tuning/schemes.py", "return self.fpp + T * (self.index_bits + self.fpp)", "return T * (self.index_bits + self.fpp)", ROWS + "the_budget_of_a_stochastic_method_is_planned_with_the_scalar_in_its_payload", "the scalar costs nothing"),
    M("algorithms/tuning/schemes.py", "min(u.scalar for u in pairs)", "max(u.scalar for u in pairs)", EDGES + "the_mean_of_a_stochastic_method_is_times_the_least_of_the_scalars", "the largest scalar of all"),
    M("algorithms/estimators/sgd.py", '"0.1/L_row"', '"1/L_row"', DEFAULTS + "a_default_is_what_its_theorem_gives", "ten times the step of svrg"),
    M("algorithms/estimators/marina.py", "min(1/(1 + omega), batch/(N/n + batch))", "batch/(N/n + batch)", DEFAULTS + "a_default_is_what_its_theorem_gives", "one branch of page's p alone"),
    M("algorithms/estimators/ef21.py", "min(delta/(20*L_rms), eta/(7*L))", "delta/(20*L_rms)", DEFAULTS + "a_default_is_what_its_theorem_gives", "one branch of the step of ef21-sgdm alone"),
    M("algorithms/estimators/diana.py", '"1/(1 + omega)"', '"1/(2 + omega)"', DEFAULTS + "a_default_is_what_its_theorem_gives", "a smaller α of diana"),
    M("algorithms/papers/adiana.py", "max(1, sqrt(n/(32*max(omega, 1e-300))) - 1)", "(sqrt(n/(32*max(omega, 1e-300))) - 1)", DEFAULTS + "a_default_is_what_its_theorem_gives", "one branch of adiana's p alone"),
    M("algorithms/estimators/three_pc.py", "lambda k: k < d", "lambda k: k <= d", DEFAULTS + "adacgd_takes_its_own_default_levels", "d twice among the levels"),
    M("algorithms/sampling.py", "math.ceil(math.ceil(N / n) / batch)", "math.ceil(math.floor(N / n) / batch)", DEFAULTS + "a_pass_of_svrg_and_of_a_warm_up_is_a_worker_s_largest_shard_over_its_minibatch", "an epoch of the smallest shard"),
    M("evidence/comparison.py", "* (-1.0 if target.rising else 1.0) if ends", "if ends", SEEDS + "methods_that_reach_a_rising_target_come_first_and_of_the_others_the_nearest", "the farthest from a rising target comes first"),
    M("results/targets.py", "bool(np.all(np.isnan(run.column(self.column))))", "bool(np.any(np.isnan(run.column(self.column))))", SEEDS + "a_level_cannot_be_said_only_where_no_seed_knows_it", "one row without f* makes a level unknown"),
    M("evidence/crossings.py", "(float(np.median(each)) for each in found)", "(float(np.min(each)) for each in found)", SEEDS + "a_crossing_is_that_of_the_medians_over_seeds", "the luckiest seed decides about a crossing"),
    M("evidence/problems.py", "if method.cells[0].median < math.inf]", "if min(method.cells[0].took) < math.inf]", SEEDS + "the_fewest_bits_are_those_of_methods_that_reach_the_target_with_more_than_half_of_their_seeds", "one seed is enough"),
    M("evidence/verdicts.py", "min(run.cores, ranks) < workers", "max(run.cores, ranks) < workers", SEEDS + "a_claim_about_workers_that_run_alone_takes_a_core_and_a_rank_for_each_of_them", "cores or ranks in place of both"),
    M("job/tables.py", "self.relative_distance * start", "self.relative_distance", ROWS + "a_run_ends_at_its_relative_distance", "the distance is not relative"),
    M("problem/metrics/hit_rate.py", "ordered[:, 1:] >= ordered[:, :1]", "ordered[:, 1:] > ordered[:, :1]", ROWS + "ties_count_against_the_hit_rate", "ties are hits"),
    M("problem/metrics/base.py", "(self._margins > 0) ==", "(self._margins >= 0) ==", ROWS + "a_margin_of_0_counts_as_minus_1_in_the_test_accuracy", "a margin of 0 counts as +1"),
    M("problem/models/matrix_factorisation.py", " / math.sqrt(self.rank)", "", ADDRESSES + "factors_start_at_normal_numbers_over_the_root_of_the_rank_and_biases_at_0", "factors start too large"),
    M("problem/partitions/mix.py", "np.sort(rows[:taken])", "rows[:taken]", ADDRESSES + "a_mix_deals_a_share_by_label_in_file_order_and_the_rest_as_drawn", "rows by label in the order that was drawn"),
    M("cluster/slurm.py", '"OUT_OF_MEMORY", "PREEMPTED", ', '"OUT_OF_MEMORY", ', QUEUE_WORDS + "a_task_that_slurm_says_has_ended_is_no_longer_queued", "a preempted task is in the queue for ever"),
    M("cluster/notes.py", "key=lambda place: int(place.name))", "key=lambda place: -int(place.name))", QUEUE_WORDS + "of_several_submissions_the_youngest_one_counts", "the oldest submission counts"),
    M("cluster/slurm.py", "lines[ours[-1]], lines[ours[-1] + 1 :]", "lines[ours[-1]], lines", "cluster/test_slurm.py::test_the_last_words_of_a_task_say_why_it_ended", "a line before ours is the last word"),
    M("engine/observer.py", "c.seconds - e.compute - e.pack - c.clock.update", "c.seconds - e.compute - e.pack", ROWS + "the_parts_of_a_run_s_time_do_not_overlap_and_add_up", "updates count as exchange, too"),
    M("messages/costs/affine.py", "return self.c1 * payload + bits(self.c0)", "return (self.c1 * payload + bits(self.c0)) * (payload != 0)", ROWS + "an_empty_message_costs_what_a_message_costs", "an empty message is free"),
    M("messages/compressors/qsgd.py", "sqrt(b - 1) / (2 * s))", "sqrt(b - 1))", EDGES + "the_variance_that_qsgd_states_is_the_smaller_of_two_for_the_largest_magnitude_too", "a branch of ω too large"),
    M("messages/kinds/coordinates.py", "indices[values != 0], values[values != 0]", "indices, values", EDGES + "signs_of_zeros_are_not_sent", "a sign for 0"),
    M("algorithms/estimators/ef.py", "and change > 0", "and change >= 0", EDGES + "a_regime_in_which_nothing_moves_is_not_critical", "a regime that stands still is critical"),
    M("evidence/answers.py", "return together and columns", "return columns", "evidence/test_verdicts_by_hand.py::test_the_best_of_a_grid_at_its_edge_is_said", "an edge of numbers that do not go together"),
    M("evidence/levels.py", "if falls and start > 0:", "if start > 0:", EDGES + "targets_are_shares_of_the_way_and_on_an_axis_of_decades_shares_of_its_decades", "decades on any axis"),
    M("planning/pool.py", 'or any("seconds(" in', 'or all("seconds(" in', EDGES + "a_job_measures_seconds_by_its_figure_or_by_one_of_its_claims", "a job without claims measures seconds"),
    M("algorithms/downlinks/marina_p.py", "replace(node.known, before=worker.before)", "node.known", "algorithms/test_products.py::test_without_loss_every_estimator_is_gradient_descent_with_that_server_and_downlink", "the master's point before in place of the worker's"),
)

MISTAKES = (*ONCE_UNSEEN, *MESSAGES, *LINKS_AND_COSTS, *ALGORITHMS, *ENGINE, *EXCHANGE, *PROBLEM, *JOB, *RESULTS_OF_RUNS, *PICTURES, *CLUSTER, *PLANNING, *COMMANDS, *CORE, *KERNELS)


def invalid(mistakes: tuple[Mistake, ...] = MISTAKES) -> Iterator[str]:
    """What does not go with the source: a text that is not there once, a test that does not exist."""
    for m in mistakes:
        if (times := (PACKAGE / m.file).read_text().count(m.right)) != 1:
            yield f"{m.file}: {m.right!r} is there {times} times"
        for test in m.tests.split():
            file, _, name = test.partition("::")
            text = (ROOT / "tests" / file).read_text() if (ROOT / "tests" / file).exists() else ""
            if not text or (name and f"def {name.partition('[')[0]}(" not in text):
                yield f"{m.file}, {m.what}: there is no test {test}"


def play(place: Path, cache: Path, tests: list[str]) -> tuple[int, str]:
    """Pytest's exit status for these tests on the copy in `place`, and the end of what it printed."""
    status, said = played(place, pytest_of(tests), LONGEST, NUMBA_CACHE_DIR=str(cache))
    return status, "\n".join(said.splitlines()[-15:])


def nodes(mistakes: list[Mistake]) -> list[str]:
    return list(dict.fromkeys(f"tests/{test}" for m in mistakes for test in m.tests.split()))


def try_out(m: Mistake, place: Path, cache: Path) -> tuple[bool, str]:
    """True if a test notices the mistake, and a line about it."""
    file = place / "mpi_compress" / m.file
    right, begun = file.read_text(), time.monotonic()
    file.write_text(right.replace(m.right, m.wrong))
    try:
        with tempfile.TemporaryDirectory() as other:
            status, said = play(place, kernels_for(m.file, cache, Path(other)), nodes([m]))
    finally:
        file.write_text(right)
    if re.search(r"^ERROR \S+\.py\b(?!::)", said, re.MULTILINE):  # the module cannot be imported: no test was played
        status = 2
    word = {0: "NOT SEEN", 1: "seen"}.get(status, f"pytest ended with {status}:\n{said}\n")
    return status == 1, f"{word:8s} {time.monotonic() - begun:5.1f} s  {m.file}: {m.what}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", metavar="TEXT", help="mistakes whose file or words have one of these texts")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="so many at a time (default: 1)")
    options = parser.parse_args()
    chosen = [m for m in MISTAKES if not options.only or any(text in f"{m.file}: {m.what}" for text in options.only)]
    if problems := list(invalid(tuple(chosen))):
        print(*problems, sep="\n")
        return 2
    with tempfile.TemporaryDirectory(prefix="mistakes-") as folder:
        cache = Path(folder) / "cache"
        status, said = play(copied(Path(folder) / "copy-0"), cache, nodes(chosen))
        if status:
            print(f"without a mistake the tests do not pass:\n{said}")
            return 2
        print(f"{len(nodes(chosen))} tests or files of tests pass without a mistake", flush=True)

        def next_one(m: Mistake, place: Path) -> bool:
            seen, line = try_out(m, place, cache)
            print(line, flush=True)
            return seen

        seen = sum(on_copies(Path(folder), options.jobs, next_one, chosen))
    print(f"{seen} of {len(chosen)} mistakes were seen")
    return 0 if seen >= WANTED * len(chosen) else 1


if __name__ == "__main__":
    sys.exit(main())
