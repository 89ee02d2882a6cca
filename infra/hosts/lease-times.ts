/**
 * The times of a lease, as shares of the time after which a host counts as lost. A lease lasts for a third of it, so that a host
 * that is cut off has stopped long before it is declared lost; and it is renewed when a third of the lease has passed.
 */
export const leaseMsOf = (lostAfterMs: number): number => Math.round(lostAfterMs / 3);
export const renewMsOf = (leaseMs: number): number => leaseMs / 3;
