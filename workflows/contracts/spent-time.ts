import { z } from 'zod';

/** The time that a stage has run in all of its activity attempts so far, in the details of its heartbeats and failures. */
const spentTime = z.looseObject({ spentSeconds: z.number() });
export type SpentTime = z.output<typeof spentTime>;

/** Reads that time from details; 0 if they have none. */
export const readSpentSeconds = (details: unknown): number => spentTime.safeParse(details).data?.spentSeconds ?? 0;
