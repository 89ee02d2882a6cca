import { type Instruction, instructions, rejected } from './dockerfile-instructions.ts';
import { expandWord, isKnown, ofImage, splitWords, type Variables } from './dockerfile-words.ts';

/** A stage of a build, with the variables that its lines have set so far. */
export interface Stage {
  /** The name in lower case; empty if there is none. */
  readonly name: string;
  /** The image or the stage that it starts from. */
  readonly image: string;
  readonly parent: Stage | null;
  readonly env: ReadonlyMap<string, string>;
  readonly args: ReadonlyMap<string, string>;
}

/** An instruction with its place in the build. */
export interface StagedInstruction extends Instruction {
  /** The stage that it belongs to or, as a FROM, begins; null before the first one. */
  readonly stage: Stage | null;
  /** Returns a word with the values that variables have at this line. */
  expand(word: string): string;
}

/** The most characters that take the place of variables in a Dockerfile: each ARG may double those before it. */
const mostCharacters = 2 ** 20;
/** The characters for which a variable counts that a stage takes over from the one that it starts from. */
const inheritedCharacters = 32;

/**
 * Reads the instructions of a Dockerfile one by one, with the variables that each sees. `given` are arguments that need no line. Throws
 * UnsupportedTask if the values are too long.
 */
export function* readStages(
  source: string,
  given: ReadonlyMap<string, string> = new Map(),
): Generator<StagedInstruction, void, undefined> {
  const global = new Map(given);
  const stages = new Map<string, OpenStage>();
  let stage: OpenStage | null = null;
  const outside: Variables = { get: (name) => global.get(name), unset: () => '' };
  let left = mostCharacters;
  for (const instruction of instructions(source)) {
    const { keyword, rest, line } = instruction;
    const spend = (characters: number): void => {
      left -= characters;
      if (left < 0) throw rejected(`values of ARG and ENV of at most ${mostCharacters} characters together`, line);
    };
    const { get, unset } = keyword === 'FROM' || stage === null ? outside : stage.variables;
    const counted = (name: string): string | undefined => {
      const value = get(name);
      spend(value?.length ?? 0);
      return value;
    };
    const expand = (word: string): string => expandWord(word, { get: counted, unset });
    if (keyword === 'FROM') {
      stage = begin(stages, rest, expand);
      spend(inheritedCharacters * (stage.env.size + stage.args.size));
      if (stage.name !== '') stages.set(stage.name, stage);
    }
    yield { ...instruction, stage, expand };
    // All words of a line have the values before it.
    const set = keyword === 'ARG' || keyword === 'ENV' ? variablesIn(rest, keyword === 'ENV') : [];
    const values = set.map(([name, value]) => [name, value === undefined ? global.get(name) : expand(value)] as const);
    const place = keyword === 'ENV' ? stage?.env : (stage?.args ?? global);
    for (const [name, value] of values) if (value !== undefined) place?.set(name, value);
  }
}

interface OpenStage extends Stage {
  readonly env: Map<string, string>;
  readonly args: Map<string, string>;
  readonly variables: Variables;
}

function begin(stages: ReadonlyMap<string, OpenStage>, rest: string, expand: (word: string) => string): OpenStage {
  const [written = '', as, name = ''] = rest.split(/\s+/).filter((word) => !word.startsWith('--'));
  const image = expand(written);
  const parent = stages.get(image.toLowerCase()) ?? null;
  const env = new Map(parent?.env);
  const args = new Map(parent?.args);
  // What the base image sets is known to the builder alone.
  const unset = parent?.variables.unset ?? (image === 'scratch' ? () => '' : ofImage);
  return {
    name: as?.toLowerCase() === 'as' ? name.toLowerCase() : '',
    image,
    parent,
    env,
    args,
    variables: { get: (one) => env.get(one) ?? args.get(one), unset },
  };
}

/** Reads `NAME=value OTHER="value"` or, in the old form of ENV, `NAME value`. Values keep their quotes. */
export function variablesIn(rest: string, mayBeOld: boolean): readonly (readonly [name: string, value?: string])[] {
  const [, old, value] = (mayBeOld && /^(\w+)\s+(\S.*)$/s.exec(rest)) || [];
  if (old !== undefined && value !== undefined) return [[old, value]];
  return splitWords(rest).map((word) => {
    const equals = word.indexOf('=');
    return equals === -1 ? [word] : [word.slice(0, equals), word.slice(equals + 1)];
  });
}

/** Returns the image or the stage of a FROM. Throws UnsupportedTask for one that is no name. */
export function imageOfStage({ stage, line }: StagedInstruction): string {
  const image = stage?.image ?? '';
  if (!isKnown(image) || !/^[\w][\w.:/@-]*$/.test(image)) throw rejected('FROM an image by its name', line);
  return image;
}
