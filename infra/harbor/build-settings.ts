import type { BuildSettings } from '../compose/build.ts';
import { blocksOf } from './plain-dockerfile.ts';

/*
 * The settings of a build, written into its Dockerfile: an image is then made from the files of its context alone, which give it
 * its name, and all checks of a Dockerfile see the values that the builder sees.
 */

/** Makes the failure for a target that the Dockerfile does not have. */
type RejectTarget = (expected: string, got: string) => Error;

/**
 * Writes the values of arguments into the lines that declare them, and leaves out the stages after the target. Arguments that
 * the Dockerfile does not declare change nothing, as for the builder.
 */
export function configureDockerfile(
  source: string,
  { args, target }: Pick<BuildSettings, 'args' | 'target'>,
  reject: RejectTarget,
): string {
  const hasArguments = Object.keys(args).length > 0;
  if (!hasArguments && target === null) return source;
  const blocks = blocksOf(source);
  const stages = blocks.flatMap(({ instruction }, index) =>
    instruction?.keyword === 'FROM' ? [{ index, name: nameOf(instruction.rest) }] : [],
  );
  const end = target === null ? undefined : endOf(stages, target, reject);
  const written = blocks.slice(0, end).flatMap(({ instruction, lines }) => {
    if (instruction?.keyword !== 'ARG' || !hasArguments) return lines;
    return [`ARG ${withValues(instruction.rest, args)}`];
  });
  return `${written.join('\n').trimEnd()}\n`;
}

interface Stage {
  /** The position of its first instruction. */
  readonly index: number;
  readonly name: string | null;
}

/** Returns the position after the last instruction of a stage; undefined if that is the last one of all. */
function endOf(stages: readonly Stage[], target: string, reject: RejectTarget): number | undefined {
  const named = stages.findLastIndex(({ name }) => name === target.toLowerCase());
  const number = named === -1 && /^\d{1,4}$/.test(target) ? Number(target) : named;
  if (stages[number] !== undefined) return stages[number + 1]?.index;
  const names = stages.map(({ name }, position) => name ?? String(position));
  throw reject(`a stage of the Dockerfile (${names.join(', ')})`, target);
}

/** Returns the name of the stage that a FROM begins. */
function nameOf(rest: string): string | null {
  const [, as, name = null] = rest.split(/\s+/).filter((word) => !word.startsWith('--'));
  return as?.toLowerCase() === 'as' && name !== null ? name.toLowerCase() : null;
}

/** An argument that an ARG declares, with its default. */
const declared = /(?<=^|\s)([a-z_]\w*)(?:=(?:"(?:\\.|[^"\\])*"|'[^']*'|\\.|[^\s"'\\])*)?(?=\s|$)/gis;

const withValues = (rest: string, args: BuildSettings['args']): string =>
  rest.replaceAll(declared, (whole, name: string) => {
    const value = Object.hasOwn(args, name) ? args[name] : undefined;
    return value === undefined ? whole : `${name}="${value.replaceAll(/["\\$]/g, '\\$&')}"`;
  });
