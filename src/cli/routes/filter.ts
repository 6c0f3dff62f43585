/** The Unix half: the filter, and the pieces it is made of. */

import { buildCommand, buildRouteMap } from '@stricli/core'
import type { CliContext } from '../../channels/terminal/context.ts'
import { jsonFlag, wholeNumber } from '../args/flags.ts'
import { agentFlag, turnFlags } from '../args/turn-flags.ts'
import type { AgentOnly, FilterFlags, SessionFlags } from './types.ts'

const text = (brief: string, placeholder: string) => ({ kind: 'parsed', parse: String, optional: true, brief, placeholder }) as const

export const filter = buildCommand<FilterFlags, string[], CliContext>({
  loader: async () => (await import('../commands/talk/filter.ts')).filter,
  parameters: {
    flags: {
      system: text('System prompt, in place of the soul: a text, or a file', 'text|file'),
      ...turnFlags,
      tools: text('Tools that the model may call: default (the ten), a folder of executables, or a JSON list', 'what'),
      toolBackend: text('Who runs the loop of a turn with --tools: native (default), bash or llm', 'name'),
    },
    aliases: { s: 'system', m: 'model', C: 'workspace', c: 'continue' },
    positional: { kind: 'array', parameter: { parse: String, brief: 'The question; text on stdin is appended', placeholder: 'message' } },
  },
  docs: {
    brief: 'Text in, text out; the word "filter" may be left out',
    fullDescription: [
      'Answers one question on stdout, and nothing else there. `braidclaw "question"` is the same as `braidclaw filter "question"`; `--` before the',
      'question keeps a word from being taken for a command. No tool is offered to the model without --tools. Each call is a conversation of',
      'its own; -c goes on with the last one of the agent.',
    ].join(' '),
    customUsage: [
      { input: '"What is 2+2?"', brief: 'a question' },
      { input: '-s "Which service is failing?" < error.log', brief: 'with a system prompt, over text from stdin' },
      { input: '-c "And then?"', brief: 'go on' },
      { input: '--tools default "Which file here is the largest?"', brief: 'with tools, through the gate' },
    ],
  },
})

type Shown = { readonly brief: string; readonly placeholder: string }

const wordAndText = (word: Shown, said: Shown) =>
  ({
    kind: 'tuple',
    parameters: [
      { parse: String, ...word },
      { parse: String, optional: true, ...said },
    ],
  }) as const

const archiving = {
  loader: async () => (await import('../commands/talk/reset.ts')).reset,
  parameters: { flags: { ...agentFlag, ...jsonFlag } },
} as const

const entries = {
  kind: 'tuple',
  parameters: [{ parse: wholeNumber, optional: true, brief: 'Only the last so many entries', placeholder: 'n' }],
} as const

export const session = buildRouteMap<string, CliContext>({
  routes: {
    load: buildCommand<SessionFlags, [number?], CliContext>({
      loader: async () => (await import('../commands/talk/session.ts')).load,
      parameters: { flags: { ...agentFlag, ...jsonFlag }, positional: entries },
      docs: {
        brief: 'Print what was said since the last reset ("load" may be left out)',
        customUsage: [
          { input: '', brief: 'everything' },
          { input: '4 --json', brief: 'the last four entries as JSON lines' },
        ],
      },
    }),
    append: buildCommand<AgentOnly, [string, string?], CliContext>({
      loader: async () => (await import('../commands/talk/session.ts')).append,
      parameters: {
        flags: agentFlag,
        positional: wordAndText(
          { brief: 'Who said it: user, assistant, or another word', placeholder: 'role' },
          { brief: 'What was said (default: stdin)', placeholder: 'content' },
        ),
      },
      docs: { brief: 'Add an entry', customUsage: [{ input: 'user "Hello"', brief: 'a line in sessions/current.jsonl' }] },
    }),
    count: buildCommand<AgentOnly, [], CliContext>({
      loader: async () => (await import('../commands/talk/session.ts')).count,
      parameters: { flags: agentFlag },
      docs: { brief: 'Print the number of entries', customUsage: [{ input: '', brief: 'a number' }] },
    }),
    clear: buildCommand<SessionFlags, [], CliContext>({
      ...archiving,
      docs: { brief: 'The same as reset', customUsage: [{ input: '', brief: 'archive and start fresh' }] },
    }),
  },
  defaultCommand: 'load',
  docs: { brief: 'Show or change the session of an agent' },
})

export const reset = buildCommand<SessionFlags, [], CliContext>({
  ...archiving,
  docs: {
    brief: 'Archive the session of an agent; -c then begins a new conversation',
    customUsage: [{ input: '', brief: 'sessions/current.jsonl becomes sessions/<time>.jsonl' }],
  },
})

export const compose = buildCommand<AgentOnly, [], CliContext>({
  loader: async () => (await import('../commands/talk/compose.ts')).compose,
  parameters: { flags: agentFlag },
  docs: {
    brief: 'Print the system prompt of an agent: soul.md, then context/*.md',
    customUsage: [{ input: '--agent coder', brief: 'what the model is told first' }],
  },
})

export const log = buildCommand<AgentOnly, [string, string?], CliContext>({
  loader: async () => (await import('../commands/talk/log.ts')).log,
  parameters: {
    flags: agentFlag,
    positional: wordAndText(
      { brief: 'What happened, one word', placeholder: 'event' },
      { brief: 'More about it (default: none)', placeholder: 'message' },
    ),
  },
  docs: { brief: 'Add a line to the log of an agent', customUsage: [{ input: 'deploy "to staging"', brief: 'a line in agent.jsonl' }] },
})
