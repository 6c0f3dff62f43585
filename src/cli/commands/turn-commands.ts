/** Lists the commands of a turn, which need no other row: a turn does not load the list of all. */

import type { List } from '../args/command.ts'

// biome-ignore format: a list to be read
export const turnCommands: List = [
  { name: 'agent', about: 'Talk to the agent: a conversation, or one turn with -m', load: async () => (await import('./talk/agent.ts')).agent },
  { name: 'filter', about: 'Text in, text out; the word "filter" may be left out', load: async () => (await import('./talk/filter.ts')).filter },
  { name: 'stdio', about: 'Serve one conversation over lines of JSON: prompts in, events out', load: async () => (await import('./talk/stdio.ts')).stdio },
]
