/** The type of the failure by which a host declines work that needs a kind of sandbox which only other hosts have. */
export const offeredElsewhere = 'OfferedElsewhere';
