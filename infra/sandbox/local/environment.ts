import { startVariables } from '../image-environment.ts';
import type { Command } from '../sandbox.ts';

/** Variables that can make a loader or a shell run foreign code. */
const loaderNames = /^(LD_.*|GLIBC_TUNABLES|GCONV_PATH|LOCPATH|NLSPATH|BASH_ENV|ENV|.*[^A-Za-z0-9_].*)$/;
const searchPath = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

/**
 * The environment of a local command in two parts. Variables that can make a loader run foreign code must not affect the stages
 * that still run as root, so they are set after the drop, by `env`. All others never appear in an argv.
 */
export interface SplitEnvironment {
  readonly outer: Readonly<Record<string, string>>;
  /** `NAME=value` arguments for `env`. */
  readonly inner: readonly string[];
}

export function splitEnvironment(command: Pick<Command, 'env' | 'entersImage'>, home: string): SplitEnvironment {
  const own = { PATH: searchPath, HOME: home, LANG: 'C.UTF-8' };
  // There is no image: what a command enters is the environment that its caller gives it.
  const all = Object.entries({ ...own, ...startVariables({ ...own, ...command.env }, command, ':') });
  const isInner = ([name]: readonly [string, string]): boolean => loaderNames.test(name);
  return {
    outer: Object.fromEntries(all.filter((entry) => !isInner(entry))),
    inner: all.filter(isInner).map(([name, value]) => `${name}=${value}`),
  };
}
