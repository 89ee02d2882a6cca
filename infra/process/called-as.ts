/** Returns the words by which a user called temper, which hints repeat so that they can be pasted. */
export function calledAs(env: Readonly<Record<string, string | undefined>> = process.env): string {
  // npx and npm run set the first, and a checkout has no temper on PATH; infra/setup sets the second for a script of a checkout.
  return env.npm_command === undefined ? (env.TEMPER_CALLED_AS ?? 'temper') : 'npx temper';
}

/** Rewrites the commands in a text as the user called temper. */
export const asCalled = (text: string, called = calledAs()): string =>
  text.replaceAll(/`temper (?=[a-z])/g, `\`${called} `);
