"""Distances between particles and beacons, in the plane and on the ellipsoid."""

import numpy as np

from placet.kernels.jit import jit

EQUATOR_KM = 6378.137  # WGS 84
FLATTENING = 1 / 298.257223563


@jit()
def plane(position, beacon, out):
    """``out[p, i]`` = Euclidean distance between particle ``p`` and beacon ``i``.  O(particles x beacons)."""
    for p in range(len(position)):
        for i in range(len(beacon)):
            out[p, i] = np.sqrt((position[p, 0] - beacon[i, 0]) ** 2 + (position[p, 1] - beacon[i, 1]) ** 2)


@jit()
def reduced_vector(lat, lon):
    """Unit vector of (lat, lon) in degrees, using the reduced latitude: tan b = (1 - f) tan lat."""
    sin_lat, cos_lat = np.sin(np.radians(lat)), np.cos(np.radians(lat))
    y = (1 - FLATTENING) * sin_lat
    norm = np.sqrt(cos_lat * cos_lat + y * y)
    return (
        cos_lat / norm * np.cos(np.radians(lon)),
        cos_lat / norm * np.sin(np.radians(lon)),
        y / norm,
    )


@jit()
def ellipsoid(position, beacon, out):
    """``out[p, i]`` = geodesic kilometers by the formula of Andoyer and Lambert; columns are (lat, lon) in degrees.

    With the angle A between reduced vectors, d = a (A - f/2 (X + Y)), X = (A - sin A) (z1 + z2)^2 / (4 cos^2 A/2),
    Y = (A + sin A) (z1 - z2)^2 / (4 sin^2 A/2).  The error is of order f^2 d, about ten meters in a thousand
    kilometers; the formula fails near the antipode.  O(particles x beacons), one arcsine each.
    """
    there = np.empty((len(beacon), 3))
    for i in range(len(beacon)):
        there[i, 0], there[i, 1], there[i, 2] = reduced_vector(beacon[i, 0], beacon[i, 1])
    for p in range(len(position)):
        x, y, z = reduced_vector(position[p, 0], position[p, 1])
        for i in range(len(beacon)):
            # The chord stays accurate for close points, where the cosine of the angle has lost all precision.
            quarter = ((x - there[i, 0]) ** 2 + (y - there[i, 1]) ** 2 + (z - there[i, 2]) ** 2) / 4
            if quarter == 0.0:
                out[p, i] = 0.0
                continue
            half = np.sqrt(min(quarter, 1.0))
            angle = 2 * np.arcsin(half)
            sine = 2 * half * np.sqrt(max(1 - quarter, 0.0))
            bend = (angle + sine) * (z - there[i, 2]) ** 2 / (4 * quarter)
            if quarter < 1.0:
                bend += (angle - sine) * (z + there[i, 2]) ** 2 / (4 * (1 - quarter))
            out[p, i] = EQUATOR_KM * (angle - FLATTENING / 2 * bend)


@jit()
def km_per_degree(lat):
    """Kilometers per degree of latitude and of longitude at ``lat`` degrees: the two radii of curvature."""
    e2 = FLATTENING * (2 - FLATTENING)
    w2 = 1 - e2 * np.sin(np.radians(lat)) ** 2
    across = EQUATOR_KM / np.sqrt(w2)
    return np.radians(across * (1 - e2) / w2), np.radians(across * np.cos(np.radians(lat)))
