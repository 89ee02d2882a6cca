interface ExecPlace {
  readonly namespace: string;
  readonly pod: string;
  readonly container: string;
  readonly stdin: boolean;
}

/** Returns the API's path of a command in a container. */
export function execPath({ namespace, pod, container: one, stdin }: ExecPlace, command: readonly string[]): string {
  const query = new URLSearchParams({ container: one, stdin: String(stdin), stdout: 'true', stderr: 'true' });
  for (const word of command) query.append('command', word);
  return `/api/v1/namespaces/${namespace}/pods/${pod}/exec?${query}`;
}
