/** Defines the options of `openWorker`: who the worker is, where it works, and everything outside of it that it uses. */

import type { RunFacts } from '../contract/run-shapes.ts'
import type { Task } from '../contract/task-shapes.ts'
import type { ForeignRunner, OwnRun } from '../runners/runner.ts'
import type { WorkerPort } from './worker-port.ts'

/** A skill of agent/library.yaml whose invoke pattern matches a task. */
export type MatchedSkill = {
  readonly name: string
  readonly summary?: string
  readonly content?: string
  /** A program with its arguments that does it without a model; it runs as the runner "command" does. */
  readonly command?: readonly string[]
}

/** The agent's library of skills; `src/control/skills` makes it. */
export type Skills = {
  /** Tells whether there is a library: without one no task is escalated because a skill is missing. */
  readonly exists: boolean
  readonly match: (task: Pick<Task, 'title' | 'description' | 'context' | 'labels'>) => MatchedSkill | undefined
  /** The compact index of the skills of an agent. */
  readonly index: (agentId: string) => string
}

export const noSkills: Skills = { exists: false, match: () => undefined, index: () => '' }

export type WorkerRunner =
  | { readonly name: 'own'; readonly run: OwnRun }
  | { readonly name: ForeignRunner['name']; readonly runner: ForeignRunner; readonly path: string; readonly version?: string }

/** Describes the files that a run changed; see src/control/worker/changes. */
export type RunChanges = {
  readonly state: 'none' | 'waiting'
  /** The id in the store of change sets. */
  readonly id?: string
  /** SHA-256 of the canonical JSON of the changes. */
  readonly digest?: string
  /** Sums the changes up in one line for a person. */
  readonly summary?: string
  /** Holds the changes in the format of git, cut at 1 MiB. */
  readonly patch?: string
  /** Says why the rules forbid to apply it. */
  readonly refused?: string
}

/** Reports what a person did with the changes of a run. */
export type ChangesDecision = { readonly runId: string; readonly changes: 'applied' | 'dropped' }

/** Names the runner that carried out an earlier run, and its session. */
export type EarlierRun = { readonly runner: string; readonly session?: string }

/** Returns the state of a task; undefined when there is no such task. */
export type ReadTask = (id: string) => Promise<Pick<Task, 'status' | 'attempt'> | undefined>

/** A private copy of the workspace for one run. */
export type WorkspaceCopy = {
  readonly path: string
  /** Holds what the runner remembers; it lies beside the copy. */
  readonly home: string
  /** Is set when copy and folder come from the previous run of the same task, which waited for a person. */
  readonly earlier?: EarlierRun
  /** Keeps what was changed in the copy as a change set that waits for a person. Call it when nothing writes there any more. */
  keep(): Promise<RunChanges>
  /** Drops a kept change set of a run whose result was not accepted. Never rejects. */
  forget(kept: RunChanges): Promise<void>
  /** Keeps the copy for the next run of the task on this machine, in this process or a later one. */
  park(run: EarlierRun): Promise<void>
  /** Removes the copy, unless it is parked. Never rejects. */
  remove(): Promise<void>
}

export type CopyRequest = {
  readonly runId: string
  readonly taskId: string
  readonly attempt: number
  readonly command: string
  /** Aborts when the copy is not needed any more. */
  readonly signal: AbortSignal
}

export type WorkerFolders = {
  /** CONTROLPLANE_WORKSPACE_CWD: what the tasks are about; no run writes there. */
  readonly workspace: string
  /** CONTROLPLANE_SESSION_CWD: {agent}.jsonl. */
  readonly sessions: string
  /** Holds the homes and the records of children. It is an absolute path outside the workspace. */
  readonly state: string
  /** {agent}.log for the pane; CONTROLPLANE_AIDER_LOG_DIR for aider. */
  readonly logs: string
}

export type Clock = {
  /** Returns the milliseconds since 1970, for people. */
  readonly now: () => number
  /** Returns the milliseconds of a clock that cannot be set, for leases. */
  readonly monotonic: () => number
  /** Returns a number from 0 up to 1. */
  readonly random: () => number
}

export type WorkerOptions = {
  readonly agentId: string
  readonly role: string
  /** Base address without a slash at the end. */
  readonly apiUrl: string
  readonly port: WorkerPort
  readonly runner: WorkerRunner
  /** Names the model that the runner asks; absent: its own choice. */
  readonly model?: string
  readonly folders: WorkerFolders
  /** Children get only its PATH, TERM and LANG. */
  readonly env: Readonly<Partial<Record<string, string>>>
  readonly skills: Skills
  /** @throws Error that says why the workspace cannot be copied, and the reason of the signal */
  readonly copyWorkspace: (request: CopyRequest) => Promise<WorkspaceCopy>
  /** Runs the check of a task in the copy of a run. @returns why it did not pass */
  readonly check?: (command: string, path: string, signal: AbortSignal) => Promise<string | undefined>
  /** Makes the signed manifest of a run; absent: none is delivered. */
  readonly manifest?: (facts: RunFacts) => Promise<Record<string, unknown>>
  /** Returns what `receipts/status` shows of this agent. */
  readonly receipts?: () => Record<string, unknown> | undefined
  /** More facts for the report: version, signing key. */
  readonly facts?: Readonly<Record<string, unknown>>
  /** Reports which change sets of earlier runs a person has decided about; called with each report. */
  readonly reportDecided?: (report: (decision: ChangesDecision) => Promise<unknown>) => Promise<void>
  /** Removes the copies of tasks that do not wait any more; called with each report. */
  readonly tidyCopies?: (readTask: ReadTask) => Promise<void>
  /** Makes the worker end after one task. */
  readonly once?: boolean
  /** Makes the worker claim only tasks with all of these labels. */
  readonly labels?: readonly string[]
  /** Asks for a lease of so many seconds; the control plane has a limit of its own. */
  readonly leaseSeconds?: number
  /** Limits where children may connect to. `control`: only to the control plane, where that is possible. */
  readonly network?: 'control' | 'host'
  /** Folders and files besides the program's own that children may read. */
  readonly readable?: readonly string[]
  /** Limits how long a run may continue after the first request to stop, in ms; default 10,000. */
  readonly graceMs?: number
  /** Ends every request that waits for an answer; called when the worker ends whether the control plane answers or not. */
  readonly hangUp?: () => void
  /** Limits how long one claim waits, in ms; default 25,000. */
  readonly waitMs?: number
  readonly clock: Clock
  /** Shows one line, escaped, to the person who started the worker. */
  readonly say: (line: string) => void
}

/** Says how the worker, or its one task, ended. */
export type WorkerEnd = 'completed' | 'failed' | 'escalated' | 'waiting' | 'cancelled' | 'released' | 'lost' | 'none' | 'stopped'

export type Worker = {
  /** Works until it is stopped, or after one task with `once`. @throws PlaneRefusal when the control plane refuses the worker itself */
  run(): Promise<WorkerEnd>
  /** The first call stops claiming and gives the run `graceMs`; the second ends it at once. The lease is released with `now`, if the control plane answers soon. */
  stop(): void
}
