"""Strict stand-ins of IBM Spectrum LSF 10.1 and OpenPBS, which cannot be installed here.

`lsf_stand_in` and `pbs_stand_in` (stand_in.py) start one each: a server (server.py) with a queue,
hosts and processes (engine.py), and the scheduler's programs (client.py), which hand their words to
it. lsf.py and pbs.py know what these mean; lsf_words.py and pbs_words.py parse them as strictly as
the manuals have it. Nobody has run any of this beside a real LSF or PBS.
"""
