"""The pytest plug-in (entry point ``pytest11``): experiments are test items. Nothing of it is imported without need."""
