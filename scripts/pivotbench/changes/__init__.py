"""What changed between two folders of results: verdicts, failures, answers, environment, settings, winner.

folder (what is read) -> series and work, speed (verdicts); answers; surroundings (environment, study, flags)
-> compare, which puts them together as compare.json (its shape: model) with threats, changelog and gate
-> summary, and page with its story.
"""
