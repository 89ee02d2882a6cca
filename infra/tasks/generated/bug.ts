import { createRandom, type Random } from '../../random.ts';

/** A generated bug: a function of two numbers that uses the wrong operator. */
export interface Bug {
  readonly split: Split;
  /** The name of the file without `.js`. */
  readonly file: string;
  readonly name: string;
  readonly parameters: readonly [string, string];
  readonly form: FormName;
  /** The operator that the instruction asks for in words. */
  readonly goal: Operator;
  /** The operator in the broken code. */
  readonly wrong: Operator;
  readonly cases: readonly { readonly a: number; readonly b: number; readonly expected: number }[];
}

export const splits = ['train', 'test'] as const;
export type Split = (typeof splits)[number];

export interface Operator {
  readonly symbol: string;
  /** The word for the operator's result, which the instruction uses instead of the symbol. */
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

/** The function with the bug. Its variable is named after the intended result; the operator may produce another one. */
const body = (name: string, [p, q]: readonly [string, string], word: string, symbol: string): string =>
  `export function ${name}(${p}, ${q}) {\n  let ${word} = ${p};\n  ${word} ${symbol}= ${q};\n  return ${word};\n}\n`;

/** The forms of a generated module: the text that follows its function. */
export const forms = {
  plain: () => '',
  default: (name: string) => `\nexport default ${name};\n`,
  alias: (name: string) => `\nexport const run = ${name};\n`,
} as const;
export type FormName = keyof typeof forms;
const formNames = Object.keys(forms) as readonly FormName[];

/** The file of a bug, with the given operator in the function. */
export const sourceOf = ({ form, name, parameters, goal }: Bug, symbol: string): string =>
  body(name, parameters, goal.word, symbol) + forms[form](name);

const casesPerBug = 5;
/** Every fourth diagonal of the table of files and names belongs to the test split. */
const testDiagonal = 4;

/**
 * The bug of a split, seed and index. The pairs (file, name) and the triples (right operator, wrong operator, parameters) of
 * the test split never occur in the training split. Each word, operator and repair alone occurs in both.
 */
export function bugAt(split: Split, seed: number, index: number): Bug {
  const random = createRandom(`${split}/${seed}/${index}`);
  // Goals alternate, so that the few groups of a step cover them evenly.
  const turn = createRandom(`${split}/${seed}`).below(operators.length) + index;
  const goal = operatorAt(turn);
  const wrong = random.pick(operators.filter((other) => other !== goal));
  const parameters = random.pick(
    parameterPairs.filter((pair) => isHeldOutRepair(goal, wrong, pair) === (split === 'test')),
  );
  const pairs = files.flatMap((file, row) =>
    names.flatMap((name, column) =>
      ((row + column) % testDiagonal === 0) === (split === 'test') ? [{ file, name }] : [],
    ),
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
    cases: distinguishingCases(random, goal),
  };
}

/** Holds out each repair with one of the parameter pairs. If it were held out with all, training would teach to avoid it. */
const isHeldOutRepair = (goal: Operator, wrong: Operator, parameters: (typeof parameterPairs)[number]): boolean =>
  (operators.indexOf(goal) + operators.indexOf(wrong) + parameterPairs.indexOf(parameters)) % parameterPairs.length ===
  0;

function operatorAt(index: number): Operator {
  const operator = operators[index % operators.length];
  if (operator === undefined) throw new Error(`expected an index of an operator, got ${index}`);
  return operator;
}

/** Chooses arguments for which all operators give different results, so that every wrong operator fails each test. */
function distinguishingCases(random: Random, goal: Operator): Bug['cases'] {
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
