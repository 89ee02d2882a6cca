import { instructions } from '../harbor/dockerfile-instructions.ts';
import { downloadIn, longestScript } from '../harbor/downloads.ts';
import type { HarborTask } from '../harbor/harbor-task.ts';
import type { FileEntry, FileTree } from '../sandbox/files.ts';
import type { BuildContext } from '../sandbox/image.ts';
import { imagesBeside } from '../sandbox/service.ts';

/*
 * The scripts of a task, and the commands in them that show what the task needs, without running it.
 */

export const textOf = (entry: FileEntry | undefined): string => new TextDecoder().decode(entry?.bytes);

const shellScripts = (files: FileTree): readonly (readonly [path: string, text: string])[] =>
  [...files]
    .filter(([path, { bytes }]) => path.endsWith('.sh') && bytes.byteLength <= longestScript)
    .map(([path, entry]) => [path, textOf(entry)]);

export const scriptsOf = (files: FileTree): readonly string[] => shellScripts(files).map(([, text]) => text);

/** The builds of a task: of its image, and of those of its services and its tests. */
export const buildsOf = ({ build, beside, testImage }: HarborTask) => [
  ...(build === null ? [] : [build]),
  ...(testImage === null || testImage.build === null ? [] : [testImage.build]),
  ...imagesBeside(beside).flatMap((image) => ('from' in image ? [] : [image])),
];

/** Returns the commands of a Dockerfile. */
const commandsOf = (dockerfile: FileEntry | undefined): readonly string[] =>
  instructions(textOf(dockerfile)).flatMap(({ keyword, rest }) => (keyword === 'RUN' ? [rest] : []));

/** Commands that only root may run. */
const asRoot: readonly RegExp[] = [
  /\b(?:apt-get|apt|apk|dnf|yum|microdnf) (?:-\S+ ){0,5}(?:add|install|update|remove)\b/,
  /\b(?:useradd|adduser|groupadd|usermod|systemctl|sudo) /,
  />\s?\/(?:etc|usr|opt|root|lib)\//,
];

/** The place of a program in a line: at its beginning, or behind another command and variables of its own. */
const called = String.raw`(?:^|[;&|({!]|\b(?:do|else|exec|if|sudo|then|time|timeout \S+|until|while) )\s*(?:\w+=\S* )*`;
/**
 * Commands that connect without a look at the proxy variables: those of other protocols than HTTP, and Java's build tools, whose
 * runtime does not read them.
 */
const ignoringProxy: readonly RegExp[] = [
  new RegExp(`${called}(?:ssh|scp|sftp|rsync|ping6?|traceroute|telnet|nc|ncat|dig|nslookup|host) `),
  new RegExp(String.raw`${called}(?:\S*/)?(?:mvnw?|gradlew?|sbt) (?!.*(?:-o\b|--offline))`),
  /\bgit clone (?:\S+ ){0,6}(?:git@|ssh:|git:)/,
];
/** The sandbox itself, which needs no proxy. */
const near = /\b(?:localhost|127\.\d+\.\d+\.\d+|0\.0\.0\.0)\b|::1\b/;

const isComment = (line: string): boolean => /^\s*#/.test(line);

/** Returns the line of a script that runs one of the commands, apart from comments; undefined if none does. */
const lineWith = (script: string, sought: readonly RegExp[]): string | undefined =>
  script.split('\n').find((line) => !isComment(line) && sought.some((command) => command.test(line)));

export const needsRoot = (script: string): boolean => lineWith(script, asRoot) !== undefined;
/** Returns the line of a script that only root may run; undefined if there is none. */
export const lineOfRoot = (script: string): string | undefined => lineWith(script, asRoot);
/** Whether the build of an image downloads, by its Dockerfile or by a script that this one runs. */
export const buildDownloads = ({ files, scripts }: Pick<BuildContext, 'files' | 'scripts'>): boolean =>
  [...commandsOf(files.get('Dockerfile')), ...scripts].some((script) => downloadIn(script, [], 'build') !== null);

/**
 * Returns where tests, solution or build of a task run a program that ignores proxy settings, although they may have a network; null
 * if nowhere.
 */
export function placeWithoutProxy(task: HarborTask): string | null {
  const { tests, solution, description } = task;
  const { network, testNetwork, services = [], hosts = [], steps = [] } = description;
  const isOpen = (policies: readonly (typeof network)[]): boolean =>
    policies.some((policy) => policy !== undefined && policy.mode !== 'none');
  const scripts: readonly (readonly [path: string, text: string])[] = [
    ...(isOpen([testNetwork, ...steps.map((step) => step.testNetwork)]) ? named('tests', shellScripts(tests)) : []),
    ...(isOpen([network, ...steps.map((step) => step.network)]) ? named('solution', shellScripts(solution)) : []),
    ...buildsOf(task).flatMap(({ files }) =>
      commandsOf(files.get('Dockerfile')).map((command) => ['Dockerfile', command] as const),
    ),
  ];
  const places = [...services, ...hosts].map(({ name }) => name);
  const isFar = (line: string): boolean =>
    !near.test(line) && !line.split(/[^\w.-]+/).some((word) => places.includes(word));
  for (const [path, text] of scripts) {
    const line = lineWith(text.split('\n').filter(isFar).join('\n'), ignoringProxy);
    if (line !== undefined) return `${path}: ${line.trim().slice(0, 60)}`;
  }
  return null;
}

const named = (directory: string, scripts: readonly (readonly [path: string, text: string])[]) =>
  scripts.map(([path, text]) => [`${directory}/${path}`, text] as const);
