"""The simulated cluster: a stranger on loopback. Imports nothing of the rest of ``chaos``.

Its layers; each imports only layers further right, and no other package of the same rank:
__main__ > facade > server, direct > bmc, replay > http, snapshot, winrm > cluster, winshell > hostshell, windows > node > controllers > apiserver > spec > breakages > rules > objects, versions > sim
"""  # noqa: E501 - a test reads the layers from one line
