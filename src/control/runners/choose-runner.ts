/** Chooses the runner of a worker: the one that was named, else pi if its program is found, else our own. */

import { aiderRunner, claudeRunner, codexRunner, commandRunner, piRunner } from './foreign-runners.ts'
import { type ForeignRunner, type RunnerName, type RunnerSupport, runnerNames } from './runner.ts'

export type RunnerChoice = {
  /** Holds `--runner`, else CONTROLPLANE_RUNNER; absent when neither is set. */
  readonly named?: string | undefined
  /** The program and its arguments for the runner "command". */
  readonly command?: readonly string[] | undefined
  readonly env: Readonly<Partial<Record<string, string>>>
  readonly support: RunnerSupport
  /** Finds a program by name or path; returns undefined when none can be run. */
  readonly find: (program: string) => string | undefined
}

/** `path` is the path of the program; `note` tells a person about an implicit choice. */
export type ChosenRunner =
  | { readonly ok: true; readonly name: 'own'; readonly note?: string }
  | {
      readonly ok: true
      readonly name: ForeignRunner['name']
      readonly runner: ForeignRunner
      readonly path: string
      readonly note?: string
    }
  | { readonly ok: false; readonly message: string }

export function chooseRunner(choice: RunnerChoice): ChosenRunner {
  const name = choice.named?.trim() ?? ''
  if (name === '') return impliedRunner(choice)
  const known = runnerNames.find((each) => each === name)
  if (known === undefined)
    return { ok: false, message: `unknown runner ${JSON.stringify(name)}; the runners are ${runnerNames.join(', ')}` }
  return known === 'own' ? { ok: true, name: 'own' } : foundRunner(known, choice)
}

function impliedRunner(choice: RunnerChoice): ChosenRunner {
  const pi = foundRunner('pi', choice)
  if (pi.ok && pi.name !== 'own') return { ...pi, note: `CONTROLPLANE_RUNNER is not set: pi runs the tasks (${pi.path})` }
  return {
    ok: true,
    name: 'own',
    note: 'CONTROLPLANE_RUNNER is not set and the program "pi" was not found: the own runner carries out the tasks, as with --runner own',
  }
}

function foundRunner(name: Exclude<RunnerName, 'own'>, choice: RunnerChoice): ChosenRunner {
  if (name === 'command' && (choice.command?.length ?? 0) === 0)
    return { ok: false, message: 'the runner "command" needs a program after "--": --runner command -- PROGRAM [ARGUMENT…]' }
  const runner = foreignRunner(name, choice)
  const path = choice.find(runner.program)
  if (path !== undefined) return { ok: true, name, runner, path }
  return {
    ok: false,
    message: `the runner "${name}" needs the program ${JSON.stringify(runner.program)}, which was not found; ${runner.install}`,
  }
}

function foreignRunner(name: Exclude<RunnerName, 'own'>, { env, support, command = [] }: RunnerChoice): ForeignRunner {
  const makers: Readonly<Record<typeof name, () => ForeignRunner>> = {
    pi: () => piRunner({ support }),
    claude: () => claudeRunner({ support }),
    codex: () => codexRunner({ support }),
    aider: () => aiderRunner({ program: env.CONTROLPLANE_AIDER_BIN || undefined, flags: env.CONTROLPLANE_AIDER_FLAGS }),
    command: () => commandRunner(command),
  }
  return makers[name]()
}
