"""`mc.problem(job, only=None, with_plugins=False)`: the functions f_i of a job's first run, in this process, for a method
of your own; and the package of losses, data sets, the objective of a shard, and its minimiser.

`job` is a job, a dict of its tables, or a job file; or a result, whose problem it is. `only` is the label of a run, where runs have
several problems. `with_plugins` imports the plugins that a result names. What is returned has `value(x)`, `gradient(x)`, `f_i`,
`x0`, `L`, `L_i`, `mu`, `x_star`, `f_star`, `rows` and `held_out`: help(type(mc.problem(job))) says what they are.
"""
