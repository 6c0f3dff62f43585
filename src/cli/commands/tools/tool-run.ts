/** Implements `tool list | run`: with the same tools, gate and receipts as a model's calls. */

import { traceOf, traceResult } from '../../../channels/filter/loop-trace.ts'
import { takeTurn } from '../../../channels/take-turn.ts'
import { atTerminal, terminalPrompt } from '../../../channels/terminal/audience.ts'
import type { CliContext, CliSetup } from '../../../channels/terminal/context.ts'
import { readStdin } from '../../../channels/terminal/input-stream.ts'
import { coloured, wantsColor } from '../../../channels/terminal/printer.ts'
import { onInterrupt } from '../../../channels/terminal/signals.ts'
import { differenceLines } from '../../../channels/terminal/slash/past-changes.ts'
import { isTerminal } from '../../../channels/terminal/tty.ts'
import type { ShownLine } from '../../../host/changes/change-lines.ts'
import { patchText } from '../../../host/changes/patch-text.ts'
import { withConversation } from '../../../host/open/open-host.ts'
import { toolFacts } from '../../../host/records/tools.ts'
import { loadSetup } from '../../../host/setup/setup.ts'
import { sayWhere } from '../../../host/setup/workspace-folder.ts'
import type { ToolSelection } from '../../../host/toolset/contract.ts'
import { directCall } from '../../../host/toolset/direct-call.ts'
import { toolsFor } from '../../../host/toolset/tools-option.ts'
import { readArguments } from '../../../providers/wire/call-arguments.ts'
import type { AgentEvent, Call, Ending } from '../../../runtime/event.ts'
import { command, type Flags, type Given } from '../../args/command.ts'
import {
  approveFlag,
  autonomyFlag,
  jsonFlag,
  loggingAgentFlag,
  sandboxFlag,
  toolEnvFlag,
  toolsFlag,
  workspaceFlag,
} from '../../args/turn-flags.ts'
import { CliExit, exitCodes } from '../../exit.ts'
import { parseObject } from '../proof/policy.ts'

const runFlags = {
  json: { type: 'text', about: 'The arguments, a JSON object; "-" reads them from stdin (default: {})' },
  ...toolsFlag,
  ...sandboxFlag,
  ...toolEnvFlag,
  ...approveFlag,
  ...autonomyFlag,
  channel: {
    type: 'choice',
    values: ['cli', 'tool-loop'],
    about: 'tool-loop: called by a loop of somebody else; prints what a model would be told, refusals too',
  },
  dryRun: { type: 'boolean', about: 'Run a command or executable, print what it would change as a difference, and drop that' },
  ...loggingAgentFlag,
  ...workspaceFlag,
} as const satisfies Flags
type ToolRunFlags = Given<typeof runFlags>

export const list = command({
  flags: { ...toolsFlag, ...sandboxFlag, ...workspaceFlag, ...jsonFlag },
  examples: [
    ['', '- marks what is not offered, and why'],
    ['--tools ./tools', 'what that folder would offer'],
  ],
  async run(context, { workspace, tools, sandbox, json = false }) {
    const rows = await toolFacts(loadSetup(context, { workspace }), { tools, sandbox })
    if (json) return void context.process.stdout.write(`${JSON.stringify(rows)}\n`)
    for (const { name, description, risk, active, why, source } of rows) {
      const [own, first = ''] = [source !== 'built in', description.split('\n')[0]]
      const tail = `${own ? ` [${source}]` : ''}${why === undefined ? '' : ` (${why})`}`
      context.process.stdout.write(`${active ? ' ' : '-'} ${name.padEnd(14)} ${risk.padEnd(7)} ${first}${tail}\n`)
    }
  },
})

export const run = command({
  flags: runFlags,
  args: { name: { type: 'text', about: 'Name of the tool', complete: 'tools' } },
  examples: [
    [`file_read --json '{"path":"README.md"}'`, 'read a file'],
    [`shell --dry-run --json '{"command":"sed -i s/a/b/ *.txt"}'`, 'what it would change'],
    [`weather --tools ./tools --json '{"city":"Bern"}'`, 'an executable of that folder'],
  ],
  exits: [3, 4, 7, 9, 10, 130],
  async run(context, flags, { name }) {
    const { json = '{}', tools, dryRun = false } = flags
    const setup = loadSetup(context, flags)
    sayWhere(setup)
    const text = json === '-' ? await readStdin({ patient: true, tell: (line) => context.process.stderr.write(`${line}\n`) }) : json
    const request = toolsFor(setup, name, tools)
    if (flags.channel === 'tool-loop') return forLoop(setup, flags, { name, text, request })
    const { ending, result, set } = await callOnce(setup, flags, { call: { name, input: parseObject(text) }, request })
    if (set !== undefined) return printDryRun(context, set)
    const output = typeof result?.output === 'string' ? result.output : ''
    if (result?.status !== 'completed') {
      throw new CliExit(exitCodes[ending.code] || exitCodes.error, `error: ${name}: ${output || ending.message}`)
    }
    if (dryRun) context.process.stderr.write('nothing would change\n')
    context.process.stdout.data(output.endsWith('\n') || output === '' ? output : `${output}\n`)
  },
})

/** Serves an external loop: stdout gets, byte for byte, the tool result as a model would get it, also for a refusal or a failure. */
async function forLoop(
  setup: CliSetup,
  flags: ToolRunFlags,
  { name, text, request }: { name: string; text: string; request: ToolSelection },
): Promise<void> {
  const { stdout } = setup.context.process
  const trace = traceOf(setup)
  const call = { name, ...readArguments(text) }
  trace('tool_call', `${name} ${call.malformed ?? JSON.stringify(call.input)}`)
  const { ending, result, told } = await callOnce(setup, flags, { call, request: { ...request, refusals: 'not permitted' } })
  if (told === undefined) throw new CliExit(exitCodes[ending.code] || exitCodes.error, `error: ${name}: ${ending.message}`)
  traceResult(trace, { name, text: told, ok: result?.status === 'completed' })
  stdout.data(told)
  if (result?.status !== 'completed') throw new CliExit(exitCodes[ending.code] || exitCodes.error)
}

type Shown = { readonly lines: readonly ShownLine[]; readonly patch: string }

/** A person gets the difference, a pipe a patch. */
function printDryRun({ process: { stdout, stderr, env } }: CliContext, { lines, patch }: Shown): void {
  if (isTerminal(1)) stdout.write(coloured(lines, wantsColor(env)))
  else stdout.data(patch)
  stderr.write('nothing was changed: this was a dry run\n')
}

type Once = { readonly call: Pick<Call, 'name' | 'input' | 'malformed'>; readonly request: ToolSelection }
type Called = {
  /** In a dry run: what would have been changed. */
  readonly set?: Shown
  readonly ending: Ending
  readonly result?: Extract<AgentEvent, { type: 'tool_result' }>
  readonly told?: string
}

async function callOnce(setup: CliSetup, { sandbox, channel = 'cli', dryRun }: ToolRunFlags, { call, request }: Once): Promise<Called> {
  const ask = terminalPrompt(setup.context)
  const seen: { result?: Called['result']; told?: string; set?: Shown } = {}
  const options = {
    setup,
    which: { kind: 'new' },
    channel,
    ask,
    systemPrompt: '',
    provider: directCall(call, (told) => Object.assign(seen, { told })),
    tools: request,
    ...{ sandbox, dryRun: dryRun || undefined },
  } as const
  return withConversation(options, async (conversation) => {
    using interrupt = onInterrupt(conversation.cancel)
    const show = (event: AgentEvent) => {
      if (event.type === 'tool_result') seen.result = event
    }
    const person = atTerminal({ context: setup.context, conversation, ask, signal: interrupt.signal })
    /** The content is there only until the answer. */
    const dropShown: typeof person.onGate = async (gateId, proposal) => {
      const set = dryRun ? await conversation.changesOf(gateId) : undefined
      if (!set) return person.onGate(gateId, proposal)
      seen.set = { lines: differenceLines(set), patch: isTerminal(1) ? '' : patchText(set) }
      await conversation.approve(gateId, { allow: false, by: 'dry_run', note: 'this was a dry run' })
    }
    const ending = await takeTurn({ ...person, onGate: dropShown, prompt: `tool run ${call.name}`, show })
    return { ending, ...seen }
  })
}
