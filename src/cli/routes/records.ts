/** What is kept: memory and receipts. */

import { buildCommand, buildRouteMap } from '@stricli/core'
import type { CliContext } from '../../channels/terminal/context.ts'
import { type Json, jsonFlag, wholeNumber } from '../args/flags.ts'
import { agentFlag } from '../args/turn-flags.ts'
import type { AcceptFlags, AgentOnly, AnchorFlags, ApprovalListFlags, ClearFlags, DecisionFlags, ListFlags, VerifyFlags } from './types.ts'

type PinFlags = Json & AgentOnly

const limit = (count: string) =>
  ({ limit: { kind: 'parsed', parse: wholeNumber, default: count, brief: 'How many at most', placeholder: 'n' } }) as const

export const memory = buildRouteMap<string, CliContext>({
  routes: {
    list: buildCommand<ListFlags, [], CliContext>({
      loader: async () => (await import('../commands/records/memory.ts')).list,
      parameters: { flags: { ...limit('20'), ...jsonFlag } },
      docs: { brief: 'List conversations, latest first', customUsage: [{ input: '--limit 5', brief: 'the latest five' }] },
    }),
    search: buildCommand<ListFlags, [string, ...string[]], CliContext>({
      loader: async () => (await import('../commands/records/memory.ts')).search,
      parameters: {
        flags: { ...limit('10'), ...jsonFlag },
        positional: { kind: 'array', minimum: 1, parameter: { parse: String, brief: 'Words to look for', placeholder: 'query' } },
      },
      docs: { brief: 'Search all conversations', customUsage: [{ input: '"previous topic"', brief: 'best matches first' }] },
    }),
    show: buildCommand<Json, [string], CliContext>({
      loader: async () => (await import('../commands/records/memory.ts')).show,
      parameters: {
        flags: jsonFlag,
        positional: { kind: 'tuple', parameters: [{ parse: String, brief: 'Conversation id, or "last"', placeholder: 'conversation' }] },
      },
      docs: {
        brief: 'Print one conversation',
        customUsage: [
          { input: 'last', brief: 'the latest' },
          { input: 'conversation_4q2fqk8fd4spk980 --json', brief: 'one of "memory list", for scripts' },
        ],
      },
    }),
    clear: buildCommand<ClearFlags, [], CliContext>({
      loader: async () => (await import('../commands/records/memory.ts')).clear,
      parameters: { flags: { yes: { kind: 'boolean', optional: true, withNegated: false, brief: 'Really' }, ...jsonFlag } },
      docs: { brief: 'Forget every conversation (receipts stay)', customUsage: [{ input: '--yes', brief: 'there is no way back' }] },
    }),
    export: buildCommand<NonNullable<unknown>, [string?], CliContext>({
      loader: async () => (await import('../commands/records/memory.ts')).exportAll,
      parameters: {
        positional: {
          kind: 'tuple',
          parameters: [{ parse: String, optional: true, brief: 'Only this conversation', placeholder: 'conversation' }],
        },
      },
      docs: {
        brief: 'Print turns as JSON lines',
        customUsage: [
          { input: '> memory.jsonl', brief: 'everything' },
          { input: 'last', brief: 'the latest conversation' },
        ],
      },
    }),
    pin: buildCommand<PinFlags, [string, ...string[]], CliContext>({
      loader: async () => (await import('../commands/records/memory.ts')).pin,
      parameters: {
        flags: { ...agentFlag, ...jsonFlag },
        positional: {
          kind: 'array',
          minimum: 1,
          parameter: { parse: String, brief: 'What is to be kept, word for word', placeholder: 'fact' },
        },
      },
      docs: {
        brief: 'Keep a fact in the system prompt, whatever is summarised',
        customUsage: [{ input: '"I live in Lisbon"', brief: 'for the agent of every turn' }],
      },
    }),
    pins: buildCommand<PinFlags, [], CliContext>({
      loader: async () => (await import('../commands/records/memory.ts')).pins,
      parameters: { flags: { ...agentFlag, ...jsonFlag } },
      docs: { brief: 'List what is pinned', customUsage: [{ input: '--agent coder', brief: 'to one agent' }] },
    }),
    unpin: buildCommand<PinFlags, [number], CliContext>({
      loader: async () => (await import('../commands/records/memory.ts')).unpin,
      parameters: {
        flags: { ...agentFlag, ...jsonFlag },
        positional: { kind: 'tuple', parameters: [{ parse: wholeNumber, brief: 'As "memory pins" shows it', placeholder: 'number' }] },
      },
      docs: { brief: 'Take a pin away; those after it move up', customUsage: [{ input: '2', brief: 'the second' }] },
    }),
  },
  docs: { brief: 'List, search, show, clear or export conversations; pin facts' },
})

export const receipt = buildRouteMap<string, CliContext>({
  routes: {
    list: buildCommand<ListFlags, [], CliContext>({
      loader: async () => (await import('../commands/records/receipt.ts')).list,
      parameters: { flags: { ...limit('20'), ...jsonFlag } },
      docs: { brief: 'List receipts, latest last', customUsage: [{ input: '--limit 5', brief: 'the latest five' }] },
    }),
    show: buildCommand<Json, [string], CliContext>({
      loader: async () => (await import('../commands/records/receipt.ts')).show,
      parameters: {
        flags: jsonFlag,
        positional: { kind: 'tuple', parameters: [{ parse: String, brief: 'Receipt id or number', placeholder: 'receipt' }] },
      },
      docs: { brief: 'Print one receipt', customUsage: [{ input: '7', brief: 'the seventh' }] },
    }),
    verify: buildCommand<VerifyFlags, [], CliContext>({
      loader: async () => (await import('../commands/records/receipt.ts')).verify,
      parameters: {
        flags: {
          deep: {
            kind: 'boolean',
            optional: true,
            withNegated: false,
            brief: 'Also join the journal: every attempt has its receipt, every hash its content',
          },
          against: {
            kind: 'parsed',
            parse: String,
            optional: true,
            brief: 'An anchor line kept elsewhere, or a file that holds one',
            placeholder: 'line',
          },
          ...jsonFlag,
        },
      },
      docs: {
        brief: 'Replay the chain and name the first broken receipt (exit 9)',
        customUsage: [
          { input: '', brief: 'chain, mac, head and checkpoint' },
          { input: '--deep', brief: 'and that every result matches its hash' },
          { input: '--against bc1:…', brief: 'and that nothing was cut since that anchor' },
        ],
      },
    }),
    accept: buildCommand<AcceptFlags, [], CliContext>({
      loader: async () => (await import('../commands/records/receipt.ts')).accept,
      parameters: {
        flags: {
          note: { kind: 'parsed', parse: String, optional: true, brief: 'Why; kept for good with the receipt', placeholder: 'text' },
          ...jsonFlag,
        },
      },
      docs: {
        brief: 'Go on with a record that has holes: what is missing is named, and a receipt says who accepted it, when and why',
        customUsage: [
          { input: '', brief: 'only look at what would be accepted' },
          { input: '--note "the disk died; restored Monday\'s copy"', brief: 'accept it' },
        ],
      },
    }),
    rotate: buildCommand<Json, [], CliContext>({
      loader: async () => (await import('../commands/records/receipt.ts')).rotateLog,
      parameters: { flags: jsonFlag },
      docs: {
        brief: 'Close the log as a numbered segment and go on in a new one; the chain links the two. Keep the segments',
        customUsage: [{ input: '', brief: 'tool_receipts.log becomes tool_receipts.1.log' }],
      },
    }),
    anchor: buildCommand<AnchorFlags, string[], CliContext>({
      loader: async () => (await import('../commands/records/receipt.ts')).anchor,
      parameters: {
        flags: {
          to: { kind: 'parsed', parse: String, optional: true, brief: 'Append the line to this file', placeholder: 'file' },
          gitNote: {
            kind: 'boolean',
            optional: true,
            withNegated: false,
            brief: "Add it to a note on the workspace's HEAD (refs/notes/braidclaw)",
          },
          command: { kind: 'boolean', optional: true, withNegated: false, brief: 'Give it to a command on stdin; no shell' },
          ...jsonFlag,
        },
        positional: { kind: 'array', parameter: { parse: String, brief: 'With --command, after --: the command', placeholder: 'word' } },
      },
      docs: {
        brief: 'Print one short line to keep elsewhere: it later proves that nothing was cut or rewritten',
        customUsage: [
          { input: '--to /mnt/elsewhere/anchors', brief: 'keep it on another disk' },
          { input: '--git-note', brief: 'keep it with the code, and push refs/notes/braidclaw' },
          { input: '--command -- ssh host tee -a anchors', brief: 'keep it on another machine' },
        ],
      },
    }),
  },
  docs: { brief: 'List, show, verify, accept, anchor or rotate receipts' },
})

const approvalId = { kind: 'tuple', parameters: [{ parse: String, brief: 'As "approvals list" shows it', placeholder: 'id' }] } as const
const decision = {
  flags: {
    note: {
      kind: 'parsed',
      parse: String,
      optional: true,
      brief: 'Why; kept, and shown to the model when it is a no',
      placeholder: 'text',
    },
    ...jsonFlag,
  },
  positional: approvalId,
} as const

export const approvals = buildRouteMap<string, CliContext>({
  routes: {
    list: buildCommand<ApprovalListFlags, [], CliContext>({
      loader: async () => (await import('../commands/records/approvals.ts')).list,
      parameters: {
        flags: {
          ...limit('20'),
          all: { kind: 'boolean', optional: true, withNegated: false, brief: 'Also those that are answered, used or expired' },
          ...jsonFlag,
        },
      },
      docs: {
        brief: 'List the questions that wait for an answer, latest first',
        customUsage: [{ input: '', brief: 'what is asked, and until when' }],
      },
    }),
    allow: buildCommand<DecisionFlags, [string], CliContext>({
      loader: async () => (await import('../commands/records/approvals.ts')).allow,
      parameters: decision,
      docs: {
        brief: 'Say yes to exactly this plan, once',
        customUsage: [{ input: 'run_4q2fqk8fd4spk980/call_1', brief: 'a waiting turn goes on at once' }],
      },
    }),
    deny: buildCommand<DecisionFlags, [string], CliContext>({
      loader: async () => (await import('../commands/records/approvals.ts')).deny,
      parameters: decision,
      docs: {
        brief: 'Say no; the model is told',
        customUsage: [{ input: 'run_4q2fqk8fd4spk980/call_1 --note "not on a Friday"', brief: 'and why' }],
      },
    }),
    rules: buildRouteMap<string, CliContext>({
      routes: {
        list: buildCommand<Json, [], CliContext>({
          loader: async () => (await import('../commands/records/approvals.ts')).listRules,
          parameters: { flags: jsonFlag },
          docs: {
            brief: 'List what is always allowed: an executable and its sub-command',
            customUsage: [{ input: '', brief: 'what "a" was said to' }],
          },
        }),
        revoke: buildCommand<Json, [number], CliContext>({
          loader: async () => (await import('../commands/records/approvals.ts')).revokeRule,
          parameters: {
            flags: jsonFlag,
            positional: {
              kind: 'tuple',
              parameters: [{ parse: wholeNumber, brief: 'As "approvals rules list" shows it', placeholder: 'id' }],
            },
          },
          docs: { brief: 'Ask again from now on', customUsage: [{ input: '3', brief: 'the third rule' }] },
        }),
      },
      docs: { brief: 'List or revoke what is always allowed' },
    }),
  },
  docs: { brief: 'Answer questions of waiting turns, from any terminal' },
})
