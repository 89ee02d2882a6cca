/** The id of the schedule that starts passes of retention, and of its workflow. */
export const retentionSchedule = 'temper-retention';

/** The result of a pass of retention: what it removed, or skipped, by category. */
export interface RetentionResult {
  readonly categories: readonly {
    readonly category: string;
    readonly removed: number;
    readonly bytes: number;
    /** The reason why the category was skipped, in whole or in part; null when it was done. */
    readonly skipped: string | null;
  }[];
}
