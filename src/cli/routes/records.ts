/** What is kept: memory and receipts. */

import { buildCommand, buildRouteMap } from '@stricli/core'
import type { CliContext } from '../world.ts'
import { type Json, jsonFlag, wholeNumber } from './flags.ts'
import type { ClearFlags, ListFlags, VerifyFlags } from './types.ts'

const limit = (count: string) =>
  ({ limit: { kind: 'parsed', parse: wholeNumber, default: count, brief: 'How many at most', placeholder: 'n' } }) as const

export const memory = buildRouteMap<string, CliContext>({
  routes: {
    list: buildCommand<ListFlags, [], CliContext>({
      loader: async () => (await import('../commands/memory.ts')).list,
      parameters: { flags: { ...limit('20'), ...jsonFlag } },
      docs: { brief: 'List conversations, latest first', customUsage: [{ input: '--limit 5', brief: 'the latest five' }] },
    }),
    search: buildCommand<ListFlags, [string, ...string[]], CliContext>({
      loader: async () => (await import('../commands/memory.ts')).search,
      parameters: {
        flags: { ...limit('10'), ...jsonFlag },
        positional: { kind: 'array', minimum: 1, parameter: { parse: String, brief: 'Words to look for', placeholder: 'query' } },
      },
      docs: { brief: 'Search all conversations', customUsage: [{ input: '"previous topic"', brief: 'best matches first' }] },
    }),
    show: buildCommand<Json, [string], CliContext>({
      loader: async () => (await import('../commands/memory.ts')).show,
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
      loader: async () => (await import('../commands/memory.ts')).clear,
      parameters: { flags: { yes: { kind: 'boolean', optional: true, withNegated: false, brief: 'Really' }, ...jsonFlag } },
      docs: { brief: 'Forget every conversation (receipts stay)', customUsage: [{ input: '--yes', brief: 'there is no way back' }] },
    }),
    export: buildCommand<NonNullable<unknown>, [string?], CliContext>({
      loader: async () => (await import('../commands/memory.ts')).exportAll,
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
  },
  docs: { brief: 'List, search, show, clear or export conversations' },
})

export const receipt = buildRouteMap<string, CliContext>({
  routes: {
    list: buildCommand<ListFlags, [], CliContext>({
      loader: async () => (await import('../commands/receipt.ts')).list,
      parameters: { flags: { ...limit('20'), ...jsonFlag } },
      docs: { brief: 'List receipts, latest last', customUsage: [{ input: '--limit 5', brief: 'the latest five' }] },
    }),
    show: buildCommand<Json, [string], CliContext>({
      loader: async () => (await import('../commands/receipt.ts')).show,
      parameters: {
        flags: jsonFlag,
        positional: { kind: 'tuple', parameters: [{ parse: String, brief: 'Receipt id or number', placeholder: 'receipt' }] },
      },
      docs: { brief: 'Print one receipt', customUsage: [{ input: '7', brief: 'the seventh' }] },
    }),
    verify: buildCommand<VerifyFlags, [], CliContext>({
      loader: async () => (await import('../commands/receipt.ts')).verify,
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
    anchor: buildCommand<Json, [], CliContext>({
      loader: async () => (await import('../commands/receipt.ts')).anchor,
      parameters: { flags: jsonFlag },
      docs: {
        brief: 'Print one short line to keep elsewhere: it later proves that nothing was cut or rewritten',
        customUsage: [{ input: '>> ~/elsewhere/anchors', brief: 'keep it on another machine' }],
      },
    }),
  },
  docs: { brief: 'List, show, verify or anchor receipts' },
})
