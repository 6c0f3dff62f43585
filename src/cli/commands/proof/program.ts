/** Implements `frontier`, and loads the module of `verify --program`: in a child in the sandbox, because it is foreign code. */

import { createRequire } from 'node:module'
import { dirname, resolve } from 'node:path'
import type { CliContext } from '../../../channels/terminal/context.ts'
import { policyOf } from '../../../host/setup/effective-policy.ts'
import { loadSetup } from '../../../host/setup/setup.ts'
import { createConfinement } from '../../../host/toolset/sandbox/command-sandbox.ts'
import { errorText } from '../../../kit/errors.ts'
import { isObject, parseJson } from '../../../kit/json.ts'
import { didYouMean, visible, visibleLines } from '../../../kit/text.ts'
import { type BPEvent, frontier as frontierOf, type Program, type ProgramStep } from '../../../library/behavioral.ts'
import { isCompiled, ownProgram } from '../../../service/own-program.ts'
import { cleanEnvironment } from '../../../tools/process.ts'
import { command, type Flags, type Given, spelled } from '../../args/command.ts'
import { jsonFlag, sandboxFlag, workspaceFlag } from '../../args/turn-flags.ts'
import { CliExit, commandError, exitCodes, usageError } from '../../exit.ts'

export const programFlags = {
  program: { type: 'text', about: 'A module that exports a behavioral program, as default or as "program" (docs/library.md)' },
  sandbox: { ...sandboxFlag.sandbox, about: 'Where the program is loaded (default: auto); none loads it here, with all your rights' },
  ...workspaceFlag,
  ...jsonFlag,
} as const satisfies Flags

/** Keeps what a module prints without end from filling the memory. */
const MOST_BYTES = 2 ** 23

type Asked = Given<typeof programFlags> & { readonly program: string; readonly [flag: string]: unknown }

/** Runs the same command on the program in the sandbox, and prints what it prints. @throws CliExit */
export async function inSandbox(context: CliContext, name: string, { workspace, sandbox = 'auto', ...asked }: Asked): Promise<void> {
  const setup = loadSetup(context, { workspace })
  const policy = policyOf(setup.config, setup.paths, context.env)
  const confinement = createConfinement(sandbox, { setup, policy })
  const program = resolve(context.cwd, asked.program)
  const words = Object.entries({ ...asked, program, sandbox: 'none' }).flatMap(([flag, value]) =>
    value === true ? [spelled(flag)] : value ? [value].flat().flatMap((one) => [spelled(flag), String(one)]) : [],
  )
  const seconds = setup.config.limits.toolTimeoutS
  const [own, signal, out] = [ownProgram(), AbortSignal.timeout(seconds * 1000), { stdout: Buffer.alloc(0), stderr: Buffer.alloc(0) }]
  const ended = await confinement.spawn({
    argv: [own, name, ...words],
    cwd: policy.workspace,
    env: cleanEnvironment({ home: policy.workspace }),
    readOnly: true,
    readablePaths: [dirname(program), isCompiled() ? own : dirname(dirname(own))].map((path) => ({ path })),
    signal,
    onOutput(chunk, from) {
      if (out[from].length < MOST_BYTES) out[from] = Buffer.concat([out[from], chunk])
    },
  })
  confinement.close()
  if (signal.aborted)
    throw commandError(`${asked.program}: no answer after ${seconds} s (limits.tool_timeout_s); does a function never return?`)
  if (!ended.ok) throw commandError(ended.message)
  context.process.stdout.write(visibleLines(out.stdout.toString()))
  if (ended.code !== 0) throw new CliExit(ended.code ?? exitCodes.error, visibleLines(out.stderr.toString().trim()))
}

/** Asks the program in this process, with all the rights of the user. @throws CliExit that says what is wrong with the program */
export function loaded<T>(context: CliContext, program: string, ask: (found: Program) => T): T {
  const file = resolve(context.cwd, program)
  try {
    const module: unknown = createRequire(file)(file)
    const found = isObject(module) ? (module.default ?? module.program) : undefined
    if (isProgram(found)) return ask(found)
    const names = Object.keys(isObject(module) ? module : {})
    const near = names.map((name) => didYouMean(name, ['default', 'program'])).find((text) => text !== '') ?? ''
    throw new TypeError(
      `it exports ${names.join(', ') || 'nothing'}; export { threads, publicEvents, never } as default or as "program"${near}`,
    )
  } catch (error) {
    throw usageError(`${program}: ${errorText(error)}`)
  }
}

function isProgram(value: unknown): value is Program {
  return isObject(value) && isObject(value.threads)
}

const flags = {
  ...programFlags,
  after: { type: 'text', many: true, about: 'An event that came before: its type, or { "type", "detail" } as JSON; in their order' },
} as const satisfies Flags

/** Exit code 0, or 2 when the program or the history is wrong. */
export const frontier = command({
  flags,
  examples: [['--program loop.ts --after prompt --after thought', 'what can come next?']],
  async run(context, { program, ...more }) {
    if (program === undefined) throw usageError('name a program with --program FILE (docs/library.md)')
    if (more.sandbox !== 'none') return inSandbox(context, 'frontier', { program, ...more })
    const answer = loaded(context, program, (found) => frontierOf(found, more.after?.map(readEvent)))
    const lines = [
      ...answer.enabled.map((step) => `can come: ${spelledStep(step)}`),
      ...answer.blocked.map(({ type, by }) => `blocked:  ${type}, by ${by.join(', ')}`),
    ]
    context.process.stdout.write(more.json ? `${JSON.stringify(answer)}\n` : lines.map((line) => `${visible(line)}\n`).join(''))
  },
})

function readEvent(text: string): string | BPEvent {
  const found = parseJson(text)
  return isObject(found) ? { type: String(found.type), detail: found.detail } : text
}

function spelledStep({ type, detail, by }: ProgramStep): string {
  return `${type}${detail === undefined ? '' : ` ${JSON.stringify(detail)}`}, from ${by}`
}

/** Formats a step of a run for a person. */
export function stepLine(step: ProgramStep, at: number): string {
  return visible(`  ${at + 1}. ${spelledStep(step)}`)
}
