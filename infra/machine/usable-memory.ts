import { totalmem } from 'node:os';

/** Returns the bytes of memory that this process may use: the machine's, or the limit of its container. */
export const usableMemory = (): number => Math.min(totalmem(), process.constrainedMemory() || Number.POSITIVE_INFINITY);
