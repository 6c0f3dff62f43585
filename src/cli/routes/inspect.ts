/** Looking at and trying what is set up: config, provider, policy, completion. */

import { buildCommand, buildRouteMap } from '@stricli/core'
import type { CliContext } from '../../channels/terminal/context.ts'
import { proposeProviders, proposeShells } from '../args/completions.ts'
import { autonomyFlag, type Json, jsonFlag, toolsFlag, type Workspace, workspaceFlag } from '../args/flags.ts'
import type { ConfigShowFlags, PolicyFlags } from './types.ts'

export const config = buildRouteMap<string, CliContext>({
  routes: {
    show: buildCommand<ConfigShowFlags, [], CliContext>({
      loader: async () => (await import('../commands/home/config.ts')).show,
      parameters: {
        flags: {
          origin: { kind: 'boolean', optional: true, withNegated: false, brief: 'Say where each value comes from' },
          ...workspaceFlag,
          ...jsonFlag,
        },
        aliases: { C: 'workspace' },
      },
      docs: {
        brief: 'Print the resolved configuration; secrets never',
        customUsage: [
          { input: '--origin', brief: 'and which file, variable or flag said so' },
          { input: '--json', brief: 'for scripts' },
        ],
      },
    }),
    validate: buildCommand<Workspace & Json, [], CliContext>({
      loader: async () => (await import('../commands/home/config.ts')).validate,
      parameters: { flags: { ...workspaceFlag, ...jsonFlag }, aliases: { C: 'workspace' } },
      docs: {
        brief: 'Report every error at once, with line, column and what is allowed',
        customUsage: [{ input: '', brief: 'exit 0 when there is none' }],
      },
    }),
    schema: buildCommand<NonNullable<unknown>, [], CliContext>({
      loader: async () => (await import('../commands/home/config.ts')).schema,
      parameters: {},
      docs: { brief: 'Print the JSON Schema of config.toml', customUsage: [{ input: '> config.schema.json', brief: 'for an editor' }] },
    }),
  },
  defaultCommand: 'show',
  docs: { brief: 'Show, validate or describe the configuration' },
})

export const provider = buildRouteMap<string, CliContext>({
  routes: {
    list: buildCommand<Json, [], CliContext>({
      loader: async () => (await import('../commands/home/provider.ts')).list,
      parameters: { flags: jsonFlag },
      docs: { brief: 'List the configured providers', customUsage: [{ input: '', brief: '* marks the default' }] },
    }),
    test: buildCommand<Json, [string], CliContext>({
      loader: async () => (await import('../commands/home/provider.ts')).test,
      parameters: {
        flags: jsonFlag,
        positional: {
          kind: 'tuple',
          parameters: [
            { parse: String, brief: 'Name under [providers.models]', placeholder: 'name', proposeCompletions: proposeProviders },
          ],
        },
      },
      docs: {
        brief: 'Ask a provider one short question and say what came back',
        customUsage: [{ input: 'local', brief: 'exit 8 when it does not answer' }],
      },
    }),
  },
  docs: { brief: 'List or test model providers' },
})

export const policy = buildRouteMap<string, CliContext>({
  routes: {
    explain: buildCommand<PolicyFlags, string[], CliContext>({
      loader: async () => (await import('../commands/proof/policy.ts')).explain,
      parameters: {
        flags: {
          tool: {
            kind: 'parsed',
            parse: String,
            optional: true,
            brief: 'Explain a call of this tool instead of a command',
            placeholder: 'name',
          },
          args: { kind: 'parsed', parse: String, optional: true, brief: 'Its arguments, a JSON object (with --tool)', placeholder: 'args' },
          threads: {
            kind: 'parsed',
            parse: String,
            optional: true,
            brief: 'Judge by the rules of this file instead of yours',
            placeholder: 'file',
          },
          ...jsonFlag,
          ...toolsFlag,
          ...autonomyFlag,
          ...workspaceFlag,
        },
        aliases: { C: 'workspace' },
        positional: { kind: 'array', parameter: { parse: String, brief: 'The command, after --', placeholder: 'command' } },
      },
      docs: {
        brief: 'What the gate and your rules say of a command or a call: verdict, risk, rule. Runs nothing',
        customUsage: [
          { input: '-- git push --force', brief: 'a command' },
          { input: '--json -- rm -rf /', brief: 'for scripts' },
          { input: `--tool file_read --args '{"path":"/etc/passwd"}'`, brief: 'a tool call' },
          { input: '--threads my.json -- git push', brief: 'a rule before it is used' },
        ],
      },
    }),
  },
  docs: { brief: 'Explain what the gate decides' },
})

export const completion = buildCommand<NonNullable<unknown>, [string], CliContext>({
  loader: async () => (await import('../commands/home/completion.ts')).completion,
  parameters: {
    positional: {
      kind: 'tuple',
      parameters: [{ parse: String, brief: 'bash, zsh or fish', placeholder: 'shell', proposeCompletions: proposeShells }],
    },
  },
  docs: {
    brief: 'Print a completion script',
    customUsage: [{ input: 'bash > ~/.local/share/bash-completion/completions/braidclaw', brief: 'for bash' }],
  },
})
