/** What some tests need and a machine may lack; CI provides all of it. */
export interface Facility {
  readonly name: string;
  /** How the names of the files end whose tests need it. */
  readonly suffix: string;
  readonly availability: Availability;
}

export type Availability = { readonly usable: true } | { readonly usable: false; readonly reason: string };
