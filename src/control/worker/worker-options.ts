/** Defines what `openWorker` takes: who the worker is, where it works, and everything of the world that it touches. */

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
  /** Whether there is a library at all: without one no task is escalated for want of a skill. */
  readonly isThere: boolean
  readonly match: (task: Pick<Task, 'title' | 'description' | 'context' | 'labels'>) => MatchedSkill | undefined
  /** The compact index of the skills of an agent. */
  readonly index: (agentId: string) => string
}

export const noSkills: Skills = { isThere: false, match: () => undefined, index: () => '' }

export type WorkerRunner =
  | { readonly name: 'own'; readonly run: OwnRun }
  | { readonly name: ForeignRunner['name']; readonly runner: ForeignRunner; readonly path: string; readonly version?: string }

/** What became of the files of a run; see src/control/worker/changes. */
export type KeptSet = {
  readonly state: 'none' | 'waiting'
  /** The id in the store of change sets. */
  readonly id?: string
  /** SHA-256 of the canonical JSON of the changes. */
  readonly digest?: string
  /** One line for a person. */
  readonly summary?: string
  /** The changes in the format of git, cut at 1 MiB. */
  readonly patch?: string
  /** Why the rules forbid to apply it. */
  readonly refused?: string
}

/** What a person did with the changes of a run. */
export type ChangesDecision = { readonly runId: string; readonly changes: 'applied' | 'dropped' }

/** What carried out a run, and how it names its session. */
export type EarlierRun = { readonly runner: string; readonly session?: string }

/** How a task stands; undefined: there is no such task. */
export type LookAtTask = (id: string) => Promise<Pick<Task, 'status' | 'attempt'> | undefined>

/** A private copy of the workspace for one run. */
export type WorkspaceCopy = {
  readonly path: string
  /** A folder beside it for what the runner remembers. */
  readonly home: string
  /** Copy and folder are those of the run of the same task before this one, which waited for somebody. */
  readonly earlier?: EarlierRun
  /** Keeps what was changed in the copy as a change set that waits for a person. Call it when nothing writes there any more. */
  keep(): Promise<KeptSet>
  /** Drops a kept change set of a run whose result was not accepted. Never rejects. */
  forget(kept: KeptSet): Promise<void>
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
  /** Aborted: nobody needs the copy any more. */
  readonly signal: AbortSignal
}

export type WorkerFolders = {
  /** CONTROLPLANE_WORKSPACE_CWD: what the tasks are about; no run writes there. */
  readonly workspace: string
  /** CONTROLPLANE_SESSION_CWD: {agent}.jsonl. */
  readonly sessions: string
  /** The worker's own: homes of children, records of children. Absolute, outside the workspace. */
  readonly state: string
  /** {agent}.log for the pane; CONTROLPLANE_AIDER_LOG_DIR for aider. */
  readonly logs: string
}

export type Clock = {
  /** Milliseconds since 1970, for people. */
  readonly now: () => number
  /** Milliseconds of a clock that nobody sets, for leases. */
  readonly monotonic: () => number
  /** From 0 up to 1. */
  readonly random: () => number
}

export type WorkerOptions = {
  readonly agentId: string
  readonly role: string
  /** Base address without a slash at the end. */
  readonly apiUrl: string
  readonly port: WorkerPort
  readonly runner: WorkerRunner
  /** Which model the runner asks; absent: its own choice. */
  readonly model?: string
  readonly folders: WorkerFolders
  /** Children get PATH, TERM and LANG of it, and nothing else. */
  readonly env: Readonly<Partial<Record<string, string>>>
  readonly skills: Skills
  /** @throws Error that says why the workspace cannot be copied, and the reason of the signal */
  readonly copyWorkspace: (request: CopyRequest) => Promise<WorkspaceCopy>
  /** Makes the signed manifest of a run; absent: none is delivered. */
  readonly manifest?: (facts: RunFacts) => Promise<Record<string, unknown>>
  /** What `receipts/status` shows of this agent. */
  readonly receipts?: () => Record<string, unknown> | undefined
  /** More facts for the report: version, signing key. */
  readonly facts?: Readonly<Record<string, unknown>>
  /** Tells which kept change sets of earlier runs a person has decided about; called with each report. */
  readonly tellDecided?: (tell: (decision: ChangesDecision) => Promise<unknown>) => Promise<void>
  /** Removes the copies of tasks that wait for nothing any more; called with each report. */
  readonly tidyCopies?: (look: LookAtTask) => Promise<void>
  /** Handle one task and end. */
  readonly once?: boolean
  /** Claim only tasks with all of these labels. */
  readonly labels?: readonly string[]
  /** Seconds of a lease; the control plane gives at most its own limit. */
  readonly leaseSeconds?: number
  /** Where children may connect to: `control`: the control plane only, where that is possible. */
  readonly network?: 'control' | 'host'
  /** Folders and files besides the program's own that children may read. */
  readonly readable?: readonly string[]
  /** How long a run may go on after the first request to stop, in ms; default 10,000. */
  readonly graceMs?: number
  /** Ends every request that waits for an answer; called when the worker ends whether the control plane answers or not. */
  readonly hangUp?: () => void
  /** How long one claim waits, in ms; default 25,000. */
  readonly waitMs?: number
  readonly clock: Clock
  /** One line for the person who started the worker; it is shown escaped. */
  readonly say: (line: string) => void
}

/** How the worker, or its one task, ended. */
export type WorkerEnd = 'completed' | 'failed' | 'escalated' | 'waiting' | 'cancelled' | 'released' | 'lost' | 'none' | 'stopped'

export type Worker = {
  /** Works until it is stopped, or after one task with `once`. @throws PlaneRefusal when the control plane refuses the worker itself */
  run(): Promise<WorkerEnd>
  /** The first call stops claiming and gives the run `graceMs`; the second ends it at once. The lease is released with `now`, if the control plane answers soon. */
  stop(): void
}
