/** Checking what happened and what could: verify, replay, run. */

import { buildCommand, buildRouteMap } from '@stricli/core'
import type { CliContext } from '../../channels/terminal/context.ts'
import { type Json, jsonFlag, wholeNumber, workspaceFlag } from '../args/flags.ts'
import type { RebuildFlags } from '../commands/proof/rebuild.ts'
import type { ReplayFlags } from '../commands/proof/replay.ts'
import type { VerifyProgramFlags } from '../commands/proof/verify.ts'
import type { ListFlags } from './types.ts'

export const verify = buildCommand<VerifyProgramFlags, [], CliContext>({
  loader: async () => (await import('../commands/proof/verify.ts')).verify,
  parameters: {
    flags: {
      threads: {
        kind: 'parsed',
        parse: String,
        optional: true,
        brief: 'Check these rules instead of the installed ones',
        placeholder: 'file',
      },
      ...workspaceFlag,
      ...jsonFlag,
    },
    aliases: { C: 'workspace' },
  },
  docs: {
    brief: 'Model-check the rules that run in production; print the shortest counterexample',
    customUsage: [{ input: '--threads my-rules.json', brief: 'with rules of your own (docs/rules.md)' }],
  },
})

export const replay = buildCommand<ReplayFlags, [string?], CliContext>({
  loader: async () => (await import('../commands/proof/replay.ts')).replay,
  parameters: {
    flags: {
      policy: { kind: 'parsed', parse: String, optional: true, brief: 'What would this configuration have decided?', placeholder: 'file' },
      all: { kind: 'boolean', optional: true, withNegated: false, brief: 'Every run of this home' },
      ...workspaceFlag,
      ...jsonFlag,
    },
    aliases: { C: 'workspace' },
    positional: { kind: 'tuple', parameters: [{ parse: String, optional: true, brief: 'Run id, or "last"', placeholder: 'run' }] },
  },
  docs: {
    brief:
      'Run a past run again from its journal: its events byte for byte, without the partial texts of the stream; nothing is executed, asked or fetched (exit 9 when altered)',
    customUsage: [
      { input: 'last', brief: 'the latest run' },
      { input: '--all --policy stricter.toml', brief: 'what would that policy have done?' },
    ],
  },
})

export const rebuild = buildCommand<RebuildFlags, [], CliContext>({
  loader: async () => (await import('../commands/proof/rebuild.ts')).rebuild,
  parameters: {
    flags: {
      check: { kind: 'boolean', optional: true, withNegated: false, brief: 'Only compare; change nothing (exit 9 when something differs)' },
      ...jsonFlag,
    },
  },
  docs: {
    brief: 'Make turns, conversations and search index anew from the journal, and compare the receipts with it',
    customUsage: [{ input: '--check', brief: 'prove that they are what the journal says' }],
  },
})

export const run = buildRouteMap<string, CliContext>({
  routes: {
    list: buildCommand<ListFlags, [], CliContext>({
      loader: async () => (await import('../commands/records/run.ts')).list,
      parameters: {
        flags: { limit: { kind: 'parsed', parse: wholeNumber, default: '20', brief: 'How many at most', placeholder: 'n' }, ...jsonFlag },
      },
      docs: { brief: 'List runs, latest first' },
    }),
    show: buildCommand<Json, [string], CliContext>({
      loader: async () => (await import('../commands/records/run.ts')).show,
      parameters: {
        flags: jsonFlag,
        positional: { kind: 'tuple', parameters: [{ parse: String, brief: 'Run id, or "last"', placeholder: 'run' }] },
      },
      docs: { brief: 'Print the journal of one run' },
    }),
  },
  docs: { brief: 'List runs or show the journal of one' },
})
