import { z } from 'zod';
import { TemperFailure } from '../../../workflows/contracts/failures.ts';
import { readOperatorFile, secretFrom, variableName } from '../../operator-file.ts';

const about = z.strictObject({
  url: z.url({ protocol: /^https?$/, error: 'expected an address that begins with http:// or https://' }),
  /** The variable in the stack's environment that holds the token; the file itself never holds it. */
  tokenFrom: variableName.optional(),
});
const file = z.record(z.string(), about);

/** An OpenEnv environment that the operator lets tasks use. */
export interface NamedEnvironment {
  readonly name: string;
  readonly url: string;
  /** A secret, which is sent in one header and used nowhere else. */
  readonly token: string | null;
}

export interface Environments {
  /** Returns an environment by its name. Throws TemperFailure UnsupportedTask, which lists the known names, or InvalidInput. */
  find(name: string): Promise<NamedEnvironment>;
}

/** Provides the environments that the operator's file names; it is read at each call. Tasks name an environment, never an address. */
export function createEnvironments(
  path: string,
  environment: Readonly<Record<string, string | undefined>>,
): Environments {
  return {
    async find(name) {
      const known = await readOperatorFile(path, 'a JSON object of environments by their names', file);
      const found = Object.hasOwn(known, name) ? known[name] : undefined;
      if (found === undefined) {
        const names = Object.keys(known).join(', ') || 'none';
        throw new TemperFailure(
          'UnsupportedTask',
          `environment: expected one that ${path} names (${names}), got ${name}; add it to that file`,
        );
      }
      const { url, tokenFrom } = found;
      const token = tokenFrom === undefined ? null : secretFrom(environment, tokenFrom, `${path}: ${name}.tokenFrom`);
      return { name, url: url.replace(/\/+$/, ''), token };
    },
  };
}
