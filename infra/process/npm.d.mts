/** Runs npm with its output on stderr, or `quiet` with its output in the error. Throws an error that says what to do. */
export function runNpm(
  args: readonly string[],
  directory: string,
  purpose: string,
  options?: { readonly quiet?: boolean },
): Promise<void>;
