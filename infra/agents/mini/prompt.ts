/** The fixed part of mini's prompt. It is short, so that a tiny policy's context has room for the task. */
export const systemPrompt = 'Repair the code with the tools, then submit.';

export const reminder = 'Call a tool. Call submit when you are done.';
