"""The pytest plug-in (entry point ``pytest11``): experiments are test items. Modules are imported when needed."""
