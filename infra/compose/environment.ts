import { readEnvFile } from './env-file.ts';
import { literalValue, writeHostValue } from './host-value.ts';
import type { Service } from './schema.ts';
import { insideOf, type Reading } from './values.ts';
import { wholeUse } from './variables.ts';

/** Returns variables as pairs; null stands for the value of the host's variable of that name. */
function pairsOf(
  environment: readonly string[] | Readonly<Record<string, string | number | boolean | null>>,
): readonly (readonly [string, string | null])[] {
  if (!Array.isArray(environment)) {
    return Object.entries(environment).map(([key, value]) => [key, value === null ? null : String(value)]);
  }
  return environment.map((line: string) => {
    const at = line.indexOf('=');
    return at === -1 ? [line, null] : [line.slice(0, at), line.slice(at + 1)];
  });
}

/** The most characters of a file of variables. */
const longestEnvFile = 256 * 1024;

/** Reads the variables of a service: those of its files (`env_file`), over which go those of `environment`. */
export function environmentOf(
  { env_file: files = [], environment }: Pick<Service, 'env_file' | 'environment'>,
  reading: Reading,
): Readonly<Record<string, string>> {
  const { fill, reject, variables, textOf } = reading;
  const read = [files].flat().flatMap((given) => {
    const { path: written, required, format } = typeof given === 'string' ? { path: given, required: true } : given;
    const path = insideOf(fill(written, 'env_file'), 'env_file', reject);
    if (format !== undefined && format !== 'raw') throw reject('env_file.format', 'raw, or none', format);
    const text = textOf(path);
    if (text === null && !required) return [];
    if (text === null) throw reject('env_file', "a file of the task's own folder", `./${path}, which is missing`);
    if (text.length > longestEnvFile) {
      throw reject('env_file', `a file of at most ${longestEnvFile} characters`, `./${path} of ${text.length}`);
    }
    const refuse = (expected: string, got: string): Error => reject('env_file', expected, `${got} of ./${path}`);
    return readEnvFile(text, { variables, isRaw: format === 'raw', refuse });
  });
  const ofFiles = read.map(([key, value]) => [
    key,
    typeof value === 'string' ? literalValue(value) : writeHostValue(value),
  ]);
  return { ...Object.fromEntries(ofFiles), ...variablesOf(environment, reading) };
}

/**
 * Reads the variables of a service. A value that is a whole variable of the host is kept in Harbor's form, because the operator
 * decides whether the task may have it.
 */
function variablesOf(environment: Parameters<typeof pairsOf>[0], reading: Reading): Readonly<Record<string, string>> {
  return Object.fromEntries(
    pairsOf(environment).map(([key, value]) => {
      const field = `environment.${key}`;
      return [key, value === null ? hostVariable(key) : filledValue(value, field, reading)];
    }),
  );
}

const hostVariable = (name: string): string => writeHostValue({ name, fallback: undefined });

function filledValue(value: string, field: string, { fill, variables, reject }: Reading): string {
  const use = wholeUse(value, (expected, got) => reject(field, expected, got));
  if (use === null || Object.hasOwn(variables, use.name) || use.operator.endsWith('+'))
    return literalValue(fill(value, field));
  return writeHostValue({
    name: use.name,
    fallback: use.operator.endsWith('-') ? fill(use.word, field) : undefined,
  });
}
