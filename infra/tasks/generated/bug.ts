import { createRandom, type Random } from './random.ts';

/** One bug of the built-in generator: a function of two numbers that uses the wrong operator. */
export interface Bug {
  readonly split: Split;
  /** Base name of the file, without `.js`. */
  readonly file: string;
  readonly name: string;
  readonly parameters: readonly [string, string];
  readonly form: FormName;
  /** What the instruction asks for, in words. */
  readonly goal: Operator;
  readonly wrong: Operator;
  readonly cases: readonly { readonly a: number; readonly b: number; readonly expected: number }[];
}

export const splits = ['train', 'test'] as const;
export type Split = (typeof splits)[number];

export interface Operator {
  readonly symbol: string;
  /** The word that an instruction uses; never the symbol. */
  readonly word: string;
  apply(a: number, b: number): number;
}

export const operators: readonly Operator[] = [
  { symbol: '+', word: 'sum', apply: (a, b) => a + b },
  { symbol: '-', word: 'difference', apply: (a, b) => a - b },
  { symbol: '*', word: 'product', apply: (a, b) => a * b },
  { symbol: '/', word: 'quotient', apply: (a, b) => a / b },
  { symbol: '%', word: 'remainder', apply: (a, b) => a % b },
  { symbol: '**', word: 'power', apply: (a, b) => a ** b },
];

export const files = [
  'area',
  'cost',
  'level',
  'price',
  'rate',
  'ratio',
  'score',
  'size',
  'speed',
  'stock',
  'total',
  'weight',
] as const;
export const names = [
  'adjust',
  'apply',
  'blend',
  'combine',
  'compute',
  'convert',
  'derive',
  'fold',
  'merge',
  'mix',
  'resolve',
  'scale',
] as const;
export const parameterPairs = [
  ['a', 'b'],
  ['x', 'y'],
  ['left', 'right'],
  ['first', 'second'],
] as const;

/** The lines that hold the bug: a variable named after what it must hold, and the operator that makes it so or not. */
const body = (name: string, [p, q]: readonly [string, string], word: string, symbol: string): string =>
  `export function ${name}(${p}, ${q}) {\n  let ${word} = ${p};\n  ${word} ${symbol}= ${q};\n  return ${word};\n}\n`;

/** What stands below them. */
export const forms = {
  plain: () => '',
  default: (name: string) => `\nexport default ${name};\n`,
  alias: (name: string) => `\nexport const run = ${name};\n`,
} as const;
export type FormName = keyof typeof forms;
const formNames = Object.keys(forms) as readonly FormName[];

/** The file of a bug, with an operator at the place in question. */
export const sourceOf = ({ form, name, parameters, goal }: Bug, symbol: string): string =>
  body(name, parameters, goal.word, symbol) + forms[form](name);

const casesPerBug = 5;
/** Every `apart`-th diagonal of the table of files and names belongs to the test split. */
const apart = 4;

/**
 * The bug of a seed, split and index. In the test split both the pair (file, name) and the triple (right operator, wrong
 * operator, parameters) are ones that no training task has; each word, operator and repair by itself does occur in both.
 */
export function bugAt(split: Split, seed: number, index: number): Bug {
  const random = createRandom(`${split}/${seed}/${index}`);
  // Goals take turns, so that a step's few groups cover them evenly.
  const turn = createRandom(`${split}/${seed}`).below(operators.length) + index;
  const goal = operatorAt(turn);
  const wrong = random.pick(operators.filter((other) => other !== goal));
  const parameters = random.pick(
    parameterPairs.filter((pair) => isHeldOutRepair(goal, wrong, pair) === (split === 'test')),
  );
  const pairs = files.flatMap((file, row) =>
    names.flatMap((name, column) => (((row + column) % apart === 0) === (split === 'test') ? [{ file, name }] : [])),
  );
  const { file, name } = random.pick(pairs);
  return {
    split,
    file,
    name,
    parameters,
    form: random.pick(formNames),
    goal,
    wrong,
    cases: tellingCases(random, goal),
  };
}

/** Each repair is held out with one of the parameter pairs: were it held out with all, training would teach to avoid it. */
const isHeldOutRepair = (goal: Operator, wrong: Operator, parameters: (typeof parameterPairs)[number]): boolean =>
  (operators.indexOf(goal) + operators.indexOf(wrong) + parameterPairs.indexOf(parameters)) % parameterPairs.length ===
  0;

function operatorAt(index: number): Operator {
  const operator = operators[index % operators.length];
  if (operator === undefined) throw new Error(`expected an index of an operator, got ${index}`);
  return operator;
}

/** Arguments for which no two operators agree, so that every wrong choice fails each test. */
function tellingCases(random: Random, goal: Operator): Bug['cases'] {
  const pairs: { readonly a: number; readonly b: number }[] = [];
  for (let a = 3; a <= 12; a++) {
    for (let b = 2; b < a; b++) {
      if (new Set(operators.map((operator) => operator.apply(a, b))).size === operators.length) pairs.push({ a, b });
    }
  }
  return random
    .shuffle(pairs)
    .slice(0, casesPerBug)
    .map(({ a, b }) => ({ a, b, expected: goal.apply(a, b) }));
}
