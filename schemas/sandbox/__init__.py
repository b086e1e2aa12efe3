"""The sandbox's forms and scenario files."""
