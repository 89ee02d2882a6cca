import { setUpNeeds } from '../../workflows/contracts/network.ts';
import type { FileTree } from '../sandbox/file-tree.ts';
import { findCommand, type ShellCommand } from './shell-commands.ts';

/*
 * Commands that download. They are recognised by their words: what a script does with variables, and what other programs do, is
 * not known. A command that may find all that it needs in the image (`npm test`, `cargo build`) does not count. In the scripts of
 * tests that is true as well of one which names no package but installs what its project locks (`uv run`, `poetry install`,
 * `npm ci`): an image that was prepared with it has all of it.
 */

/** The largest script that is searched. */
export const longestScript = 256 * 1024;
/** The most characters of a command with its place, which is in the history of each rollout. */
const shownCharacters = 100;

/** The place of a script: the build of an image, or one that may have been prepared with the dependencies of its project. */
type ScriptPlace = 'build' | 'prepared';

/** Returns the first command of a script that downloads, with its line; null if there is none. */
export function downloadIn(
  script: string,
  near: readonly string[] = [],
  place: ScriptPlace = 'prepared',
): Pick<ShellCommand, 'line' | 'text'> | null {
  return findCommand({ script, line: 1 }, (command) => isDownload(command, { near, place })) ?? null;
}

/** The part of a task that is around its tests. */
interface Surroundings {
  /** The commands of a task's set-up. */
  readonly setup: readonly string[];
  /** Names of services beside the sandbox, and of other hosts that it knows. */
  readonly near: readonly string[];
}

/**
 * Returns the command by which the tests of a task or of its step download, or the set-up before them, as
 * `tests/test.sh:3: pip install pytest`; null if there does not count.
 */
export function neededDownload(
  { tests, begin }: { readonly tests: FileTree; readonly begin: { readonly workdir: FileTree } | null },
  { setup, near }: Surroundings,
): string | null {
  const ofTests = downloadOfFiles(tests, ['prepare.sh', 'test.sh'], near);
  if (ofTests !== null) return `tests/${ofTests}`.slice(0, shownCharacters);
  const ofStep = downloadOfFiles(begin?.workdir ?? new Map(), ['setup.sh'], near);
  const ofTask = setup.map((command) => downloadIn(command, near)?.text).find((text) => text !== undefined);
  const found = ofStep ?? ofTask ?? null;
  return found === null ? null : `${setUpNeeds}${found}`.slice(0, shownCharacters);
}

/** Returns the first command by which the scripts that begin, or those that they name, download. */
function downloadOfFiles(files: FileTree, begin: readonly string[], near: readonly string[]): string | null {
  const scripts = new Map(
    [...files].flatMap(([path, { bytes }]) =>
      path.endsWith('.sh') && bytes.byteLength <= longestScript
        ? [[path, new TextDecoder().decode(bytes)] as const]
        : [],
    ),
  );
  const seen = new Set(begin);
  for (const path of seen) {
    const script = scripts.get(path);
    if (script === undefined) continue;
    const found = downloadIn(script, near);
    if (found !== null) return `${path}:${found.line}: ${found.text}`;
    for (const other of scripts.keys()) if (script.includes(other.slice(other.lastIndexOf('/') + 1))) seen.add(other);
  }
  return null;
}

type Rule = (args: readonly string[], context: Context) => boolean;

interface Context {
  readonly near: readonly string[];
  readonly place: ScriptPlace;
  readonly env: ReadonlyMap<string, string>;
}

const has = (args: readonly string[], ...options: readonly string[]): boolean =>
  args.some((arg) => options.includes(arg.split('=', 1)[0] ?? ''));
/** Options whose value is the next word, by program. */
const valued = {
  none: new Set<string>(),
  pip: optionsIn(
    '-i --index-url --extra-index-url --proxy --timeout --retries --cache-dir --log --python -p --target -t --prefix --root -f --find-links -c --constraint --trusted-host --cert --python-version --platform',
  ),
  uv: optionsIn('--directory --project --cache-dir --config-file --color --allow-insecure-host'),
  npm: optionsIn('--prefix -C --dir --cwd --registry --cache --userconfig --loglevel --filter -F --workspace'),
  apt: optionsIn('-o --option -c --config-file -t --target-release --default-release'),
  git: optionsIn('-C -c --git-dir --work-tree'),
  cargo: optionsIn('-C -Z --config --color --manifest-path --target-dir'),
  other: optionsIn('-C -d --working-dir --cwd --gemfile --root --config'),
};

function optionsIn(text: string): ReadonlySet<string> {
  return new Set(text.split(' '));
}

/** Returns the arguments that are no options, nor values of these options. */
const operands = (args: readonly string[], options: ReadonlySet<string> = valued.none): readonly string[] =>
  args.filter((arg, index) => !arg.startsWith('-') && !options.has(args[index - 1] ?? ''));
/** Returns a rule for a program whose first operand is one of these commands. */
const withCommand =
  (commands: readonly string[], ...offline: readonly string[]): Rule =>
  (args) =>
    commands.includes(operands(args, valued.other)[0] ?? '') && !has(args, ...offline);

/** Returns a rule for commands that install what a project locks. */
const ofProject =
  (rule: Rule): Rule =>
  (args, context) =>
    context.place === 'build' && rule(args, context);
const either =
  (...rules: readonly Rule[]): Rule =>
  (args, context) =>
    rules.some((rule) => rule(args, context));

const isLocal = (path: string): boolean =>
  /^(?:\.{0,2}\/|\.$|\.\[|~|file:)/.test(path) || /\.(?:whl|deb|rpm)$/.test(path);

/** Whether an address is outside of the sandbox. One that a variable names is unknown. */
function isOutside(address: string, near: readonly string[]): boolean {
  const [, host = ''] = /^(?:https?|ftp):\/\/(?:[^/@]*@)?(\[[^\]]*\]|[^/:?#]*)/.exec(address) ?? [];
  if (host === '' || host.startsWith('$') || host.startsWith('[') || near.includes(host)) return false;
  // A name of one label is that of a service, and no proxy resolves it.
  return host.includes('.') && !/^(?:127|0|10|192\.168)\.[\d.]+$|\.(?:localhost|local|internal)$/.test(host);
}

const fetches: Rule = (args, { near }) => args.some((arg) => isOutside(arg.replace(/^--url=/, ''), near));

const pip: Rule = (args, { env }) => {
  const [command = '', ...what] = operands(args, valued.pip);
  if (!['install', 'download', 'wheel'].includes(command)) return false;
  if (has(args, '--no-index', '--offline', '--dry-run') || env.has('PIP_NO_INDEX') || env.has('UV_OFFLINE'))
    return false;
  // The image may have what the workspace and a wheel need.
  return what.length === 0 || !what.every(isLocal) || has(args, '-r', '--requirement');
};

/** Runs a module as the program of its name: `-m pip`, `-I -m pip`, `-mpip`. */
const python: Rule = (args, context) => {
  for (const [index, arg] of args.entries()) {
    const [, given] = /^-[A-Zbdisuvx]*m(.*)$/.exec(arg) ?? [];
    if (given !== undefined) {
      const [module = '', ...rest] = given === '' ? args.slice(index + 1) : [given, ...args.slice(index + 1)];
      return ruleOf(module)?.(rest, context) ?? false;
    }
    if (!arg.startsWith('-') && !/^-[WX]$/.test(args[index - 1] ?? '')) return false;
  }
  return false;
};

/** Whether an option stands before the program that a command runs, which may have options of that name. */
const hasBefore = (args: readonly string[], option: string): boolean =>
  has(
    args.slice(
      0,
      Math.max(
        0,
        args.findIndex((arg) => !arg.startsWith('-')),
      ),
    ),
    option,
  );

const uv: Rule = (args, context) => {
  const [command = ''] = operands(args, valued.uv);
  const rest = args.slice(args.indexOf(command) + 1);
  if (has(args, '--offline') || context.env.has('UV_OFFLINE')) return false;
  if (command === 'pip') return pip(rest, context);
  if (command === 'run' && hasBefore(rest, '--with')) return true;
  if (command === 'run' || command === 'sync') return context.place === 'build' && !has(args, '--no-sync');
  return ['add', 'tool'].includes(command) || (command === 'python' && rest[0] === 'install');
};

const apt: Rule = (args) => {
  const [command = '', ...packages] = operands(args, valued.apt);
  if (['update', 'upgrade', 'dist-upgrade', 'build-dep', 'source', 'download'].includes(command)) return true;
  return command === 'install' && !has(args, '--no-download') && !(packages.length > 0 && packages.every(isLocal));
};

const system = withCommand(['add', 'install', 'update', 'upgrade'], '--no-network', '--cacheonly', '-C');

const nodePackages: Rule = (args, context) => {
  if (has(args, '--offline', '--prefer-offline') || context.env.has('npm_config_offline')) return false;
  const [command = '', ...packages] = operands(args, valued.npm);
  if (command === 'exec') return has(args, '--yes', '-y');
  if (!['install', 'i', 'ci', 'add', 'dlx', 'create'].includes(command)) return false;
  return packages.length === 0 ? context.place === 'build' : !packages.every(isLocal);
};

const git: Rule = (args, { near }) => {
  if (!['clone', 'fetch', 'pull', 'ls-remote'].includes(operands(args, valued.git)[0] ?? '')) return false;
  return args.some((arg) => isOutside(arg, near) || /^(?:ssh:\/\/|git:\/\/|git@)/.test(arg));
};

const go: Rule = (args, { env, place }) => {
  const [command = '', ...rest] = operands(args, valued.other);
  if (env.get('GOPROXY') === 'off' || env.get('GOFLAGS')?.includes('-mod=vendor')) return false;
  if (command === 'mod') return place === 'build' && rest[0] === 'download';
  return command === 'get' || (command === 'install' && rest.some((one) => one.includes('@')));
};

const cargo: Rule = (args, { place }) => {
  const [command = ''] = operands(args, valued.cargo).filter((arg) => !arg.startsWith('+'));
  if (command === 'fetch' && place === 'prepared') return false;
  return ['install', 'fetch', 'add'].includes(command) && !has(args, '--offline', '--frozen', '--path');
};

/** The programs that may download, each with the rule by which it does. */
const programs: Readonly<Record<string, Rule>> = {
  apt,
  'apt-get': apt,
  apk: system,
  dnf: system,
  yum: system,
  microdnf: system,
  zypper: system,
  pip,
  python,
  playwright: withCommand(['install']),
  uv,
  uvx: (args, { env }) => !has(args, '--offline') && !env.has('UV_OFFLINE'),
  pipx: withCommand(['install', 'run']),
  poetry: either(withCommand(['add', 'update']), ofProject(withCommand(['install']))),
  conda: withCommand(['install', 'create', 'update'], '--offline'),
  mamba: withCommand(['install', 'create', 'update'], '--offline'),
  micromamba: withCommand(['install', 'create', 'update'], '--offline'),
  npm: nodePackages,
  pnpm: nodePackages,
  bun: nodePackages,
  yarn: (args, context) =>
    !has(args, '--offline') &&
    (operands(args, valued.npm).length === 0
      ? context.place === 'build' && !has(args, '--version', '-v')
      : nodePackages(args, context)),
  npx: (args) => has(args, '--yes', '-y'),
  bunx: () => true,
  gem: withCommand(['install'], '--local'),
  bundle: either(withCommand(['add', 'update']), ofProject(withCommand(['install'], '--local'))),
  composer: either(withCommand(['require', 'update']), ofProject(withCommand(['install']))),
  cpanm: (args, { place }) =>
    has(args, '--installdeps') ? place === 'build' : operands(args, optionsIn('-l -L')).some((one) => !isLocal(one)),
  dotnet: ofProject(withCommand(['restore'])),
  go,
  cargo,
  rustup: withCommand(['install', 'update', 'toolchain', 'target', 'component']),
  git,
  curl: (args, context) => !has(args, '--unix-socket') && fetches(args, context),
  wget: fetches,
};

function isDownload({ words: [program = '', ...args], env }: ShellCommand, of: Omit<Context, 'env'>): boolean {
  return ruleOf(program)?.(args, { ...of, env }) ?? false;
}

/** Returns the rule of a program, which may have its version in its name: `python3.12`, `pip3`. */
function ruleOf(program: string): Rule | undefined {
  const name = program.replace(/^(python|pip)\d[\d.]*$/, '$1');
  return Object.hasOwn(programs, name) ? programs[name] : undefined;
}
