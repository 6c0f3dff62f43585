/** Implements `init`: it creates everything that a first run needs, keeps existing files, and adds providers that can be used now. */

import { existsSync } from 'node:fs'
import type { CliContext } from '../../../channels/terminal/context.ts'
import { describeProblem } from '../../../config/config.ts'
import { describeStep, type InitInput, initHome } from '../../../config/init.ts'
import { anyVariable, type Proposal, proposeProviders } from '../../../config/known-providers.ts'
import { createDatabase } from '../../../host/open/open-records.ts'
import { choose } from '../../../host/setup/found-models.ts'
import { errorText } from '../../../kit/errors.ts'
import { openLibc } from '../../../workspace/changes/tree/libc.ts'
import { createTurns } from '../../../workspace/changes/turns.ts'
import { command } from '../../args/command.ts'
import { jsonFlag, workspaceFlag } from '../../args/turn-flags.ts'
import { CliExit, exitCodes } from '../../exit.ts'

export const init = command({
  flags: {
    ...workspaceFlag,
    seedDefaults: {
      type: 'boolean',
      about: 'Write a new file with the workspace and the limits of the first specification: 5 rounds, 15 s a command',
    },
    agentFiles: { type: 'boolean', about: 'Also make the files of an agent: sessions/, agents.json and shellclaw.env' },
    ...jsonFlag,
  },
  examples: [
    ['', 'in your home'],
    ['--workspace ~/project', 'with this folder as the workspace'],
    ['--seed-defaults', 'with 5 rounds a turn, 15 s a command and one workspace for every folder'],
  ],
  async run(context, { workspace, seedDefaults, agentFiles, json = false }) {
    const proposals = await Promise.all(proposeProviders(context.env).map((each) => withModel(context, each)))
    await initialise(context, { workspace, seedDefaults, agentFiles, json, proposals: proposals.flat() })
  },
})

/** Fills in the model that the server has now; without an answer of the server there is nothing to write. */
async function withModel(context: CliContext, proposal: Proposal): Promise<Proposal[]> {
  if (proposal.model !== '') return [proposal]
  try {
    const { id } = await choose({ log: () => {}, context }, { ...proposal, kind: 'openai-compatible' })
    return [{ ...proposal, model: id }]
  } catch (error) {
    context.process.stderr.write(`note: ${proposal.because} is set, and not written: ${errorText(error)}; then run init again\n`)
    return []
  }
}

type Wanted = Pick<InitInput, 'workspace' | 'seedDefaults' | 'agentFiles' | 'choice'> & {
  readonly proposals: readonly Proposal[]
  readonly json: boolean
}

/** Used by `init` and `onboard`. @throws CliExit 1 that names every problem. */
export async function initialise(context: CliContext, { json, ...wanted }: Wanted): Promise<void> {
  const { home, env, cwd, channels } = context
  const workspace = wanted.workspace?.replace(/^~(?=\/|$)/, env.HOME ?? '~')
  const make = () => initHome({ ...wanted, home, env, cwd, channels, workspace, createDatabase })
  // A new home has no lock yet: there the creation of each file is exclusive.
  const result = await (existsSync(home) ? createTurns(home, openLibc).take(make) : make())
  if (json) context.process.stdout.write(`${JSON.stringify(result)}\n`)
  else for (const step of result.steps) context.process.stdout.write(`${describeStep(step)}\n`)
  if (!result.ok)
    throw new CliExit(exitCodes.error, json ? '' : result.problems.map((problem) => `error: ${describeProblem(problem)}`).join('\n'))
  if (json) return
  for (const notice of result.notices) context.process.stderr.write(`note: ${notice}\n`)
  const isNew = result.steps.some(({ what, state }) => what === 'config' && state === 'created')
  if (isNew && !wanted.choice) context.process.stderr.write(`${whoAnswers(wanted.proposals)}\n`)
}

function whoAnswers([first]: readonly Proposal[]): string {
  return first
    ? `The default provider is "${first.name}" (${first.because} is set). Try: braidclaw provider test ${first.name}`
    : `The offline helper answers until a model is connected: set ${anyVariable} and run init again, or run "braidclaw onboard"`
}
