from hypothesis import settings

settings.register_profile("kernels", deadline=None)  # the first call of a kernel may compile it
settings.load_profile("kernels")
