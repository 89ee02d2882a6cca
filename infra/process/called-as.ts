/** Returns the words by which a user called temper, which hints repeat so that they can be pasted. */
export function calledAs(env: Readonly<Record<string, string | undefined>> = process.env): string {
  // npx and npm run set the first, and a checkout has no temper on PATH; infra/setup sets the second for a script of a checkout.
  // npm test sets the first, too, and what its tests start was not called by npm.
  const { npm_command: command } = env;
  return command === undefined || command === 'test' ? (env.TEMPER_CALLED_AS ?? 'temper') : 'npx temper';
}

/** Rewrites the commands in a text as the user called temper. */
export const asCalled = (text: string, called = calledAs()): string =>
  text.replaceAll(/`temper (?=[a-z])/g, `\`${called} `);
