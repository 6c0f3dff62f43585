/** `tool`: what there is, trying one, making one, and the loop that uses them. */

import { buildCommand, buildRouteMap } from '@stricli/core'
import type { CliContext } from '../../channels/terminal/context.ts'
import { proposeTools } from '../args/completions.ts'
import { autonomyFlag, jsonFlag, sandboxFlag, toolsFlag, wholeNumber, workspaceFlag } from '../args/flags.ts'
import type { ToolDescribeFlags, ToolListFlags, ToolLoopFlags, ToolNewFlags, ToolRunFlags } from './types.ts'

const approveAllMedium = { kind: 'boolean', optional: true, withNegated: false, brief: 'Say yes beforehand to a medium-risk call' } as const
const agent = {
  kind: 'parsed',
  parse: String,
  optional: true,
  brief: 'In whose agent.jsonl the loop is logged',
  placeholder: 'id',
} as const

export const tool = buildRouteMap<string, CliContext>({
  routes: {
    list: buildCommand<ToolListFlags, [], CliContext>({
      loader: async () => (await import('../commands/tools/tool-run.ts')).list,
      parameters: { flags: { ...toolsFlag, ...sandboxFlag, ...workspaceFlag, ...jsonFlag }, aliases: { C: 'workspace' } },
      docs: {
        brief: 'List the tools, their risk and whether they are offered to the model',
        customUsage: [
          { input: '', brief: '- marks what is not offered, and why' },
          { input: '--tools ./tools', brief: 'what that folder would offer' },
        ],
      },
    }),
    run: buildCommand<ToolRunFlags, [string], CliContext>({
      loader: async () => (await import('../commands/tools/tool-run.ts')).run,
      parameters: {
        flags: {
          json: {
            kind: 'parsed',
            parse: String,
            optional: true,
            brief: 'The arguments, a JSON object; "-" reads them from stdin (default: {})',
            placeholder: 'args',
          },
          ...toolsFlag,
          ...sandboxFlag,
          approveAllMedium,
          ...autonomyFlag,
          channel: {
            kind: 'enum',
            values: ['cli', 'tool-loop'],
            optional: true,
            brief: 'tool-loop: called by a loop of somebody else; prints what a model would be told, refusals too',
          },
          agent,
          ...workspaceFlag,
        },
        aliases: { C: 'workspace' },
        positional: {
          kind: 'tuple',
          parameters: [{ parse: String, brief: 'Name of the tool', placeholder: 'name', proposeCompletions: proposeTools }],
        },
      },
      docs: {
        brief: 'Run one tool through the same gate as the model, with a receipt',
        customUsage: [
          { input: `file_read --json '{"path":"README.md"}'`, brief: 'read a file' },
          { input: `weather --tools ./tools --json '{"city":"Bern"}'`, brief: 'an executable of that folder' },
        ],
      },
    }),
    describe: buildCommand<ToolDescribeFlags, [string?], CliContext>({
      loader: async () => (await import('../commands/tools/tool-new.ts')).describe,
      parameters: {
        flags: { ...sandboxFlag, ...workspaceFlag, ...jsonFlag },
        aliases: { C: 'workspace' },
        positional: {
          kind: 'tuple',
          parameters: [{ parse: String, optional: true, brief: 'Folder or executable (default: tools.dir)', placeholder: 'path' }],
        },
      },
      docs: {
        brief: 'Ask executables what they are, in the sandbox; exit 1 when one is broken',
        customUsage: [{ input: './tools', brief: 'name, risk, parameters, and what is wrong with which' }],
      },
    }),
    new: buildCommand<ToolNewFlags, [string], CliContext>({
      loader: async () => (await import('../commands/tools/tool-new.ts')).create,
      parameters: {
        flags: {
          lang: { kind: 'enum', values: ['sh', 'python', 'ts'], optional: true, brief: 'Language of the template (default: sh)' },
          tools: { kind: 'parsed', parse: String, optional: true, brief: 'Folder to write it to (default: tools.dir)', placeholder: 'dir' },
        },
        positional: { kind: 'tuple', parameters: [{ parse: String, brief: 'Name of the tool', placeholder: 'name' }] },
      },
      docs: {
        brief: 'Write a working tool to begin with',
        customUsage: [{ input: 'weather --lang python', brief: 'an executable in ~/.braidclaw/tools' }],
      },
    }),
    loop: buildCommand<ToolLoopFlags, [string, string, string, number?], CliContext>({
      loader: async () => (await import('../commands/tools/tool-loop.ts')).loop,
      parameters: {
        flags: {
          toolBackend: {
            kind: 'parsed',
            parse: String,
            optional: true,
            brief: 'Who runs the loop: native, bash or llm (default: tools.backend)',
            placeholder: 'name',
          },
          model: { kind: 'parsed', parse: String, optional: true, brief: 'Instead of the configured model', placeholder: 'model' },
          agent,
          ...sandboxFlag,
          approveAllMedium,
          ...autonomyFlag,
          ...workspaceFlag,
        },
        aliases: { C: 'workspace', m: 'model' },
        positional: {
          kind: 'tuple',
          parameters: [
            { parse: String, brief: 'The question; "-" reads it from stdin', placeholder: 'message' },
            { parse: String, brief: 'The system prompt', placeholder: 'system' },
            { parse: String, brief: 'Which tools, as --tools takes them', placeholder: 'tools' },
            { parse: wholeNumber, optional: true, brief: 'Rounds of tool calls (default: limits.max_tool_rounds)', placeholder: 'max' },
          ],
        },
      },
      docs: {
        brief: 'Question, tool calls, results, answer: exit 0 answered, 1 error, 2 too many rounds',
        customUsage: [{ input: '"Is the disk full?" "Be brief." tools.json 8', brief: 'the contract of every loop' }],
      },
    }),
  },
  docs: { brief: 'List, run, describe or make tools; run a tool loop' },
})
