/** Runs npm with its output on stderr, or kept for the error; fails with what was expected, what came and what to do. */
export function runNpm(
  args: readonly string[],
  directory: string,
  purpose: string,
  options?: { readonly quiet?: boolean },
): Promise<void>;
