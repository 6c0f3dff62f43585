/** What the rest of the program knows of a sandbox, and what a sandbox needs to know of the machine. */

export type Environment = { readonly [name: string]: string }

/**
 * An absolute folder or file, read-only. With `from` (a file) its content is seen at `path` instead of what stands there; where a sandbox has
 * no mounts, a program that is named by `path` is started as `from`.
 */
export type ReadablePath = { readonly path: string; readonly from?: string }

/** `argv[0]` is the executable, absolute or on the PATH of `env`; `env` is all the child gets. */
export type SpawnPlan = {
  readonly argv: readonly string[]
  readonly cwd: string
  readonly env: Environment
  /** On abort everything that the command started is killed. */
  readonly signal: AbortSignal
  /** What this command may read besides. */
  readonly readablePaths?: readonly ReadablePath[]
  /** The workspace is read-only for this command. */
  readonly readOnly?: boolean
  onOutput(chunk: Uint8Array, from: 'stdout' | 'stderr'): void
}

/**
 * `code` is 128 + n when a signal n ended a confined command. `undone`: what of its work was not left in the workspace, a sentence each.
 * `ok: false`: it never ran.
 */
export type Ended =
  | {
      readonly ok: true
      readonly code: number | null
      readonly signal?: string
      readonly leftBehind: boolean
      readonly undone?: readonly string[]
    }
  | { readonly ok: false; readonly message: string }

/** Resolves when the child and all that it started are gone; never rejects. */
export type Spawn = (plan: SpawnPlan) => Promise<Ended>

export type Log = (level: 'debug' | 'info' | 'warn' | 'error', message: string, fields?: { readonly [name: string]: unknown }) => void

export type SandboxName = 'bubblewrap' | 'landlock' | 'none'

/** `auto` is bubblewrap. Landlock protects less, none nothing at all: both only because somebody typed it. */
export type SandboxKind = 'auto' | SandboxName

export type Sandbox = {
  readonly name: SandboxName
  /** Which layers stand between a command and the machine, one line each. */
  describe(): string[]
  readonly spawn: Spawn
  /** Takes back what the sandbox keeps outside (control group, filter file, proxy socket). No spawn may follow. */
  close?(): void
}

export type Limits = {
  /** Data of one process; where a control group can be had, memory of all processes together. */
  readonly memoryBytes: number
  readonly processes: number
  /** Longest file a command may write. */
  readonly fileBytes: number
  /** Processor time of one process. */
  readonly cpuSeconds: number
}

/** Layers that a test may leave out, to see the probe notice. */
export const layers = [
  'mount namespace',
  'protected paths',
  'hidden files',
  'network namespace',
  'pid namespace',
  'ipc namespace',
  'seccomp',
  'limits',
  'environment',
] as const

export type Layer = (typeof layers)[number]

/** One direction each; `pipeTo` between two of them keeps the back-pressure. */
export type Connection = { readonly readable: ReadableStream<Uint8Array>; readonly writable: WritableStream<Uint8Array> }

/** The way out for listed hosts. `dial` judges the host once more, resolves it and connects to the very address that it checked. */
export type Network = {
  listen(path: string, accept: (connection: Connection) => void): { stop(): void }
  dial(target: {
    readonly host: string
    readonly port: number
  }): Promise<{ readonly ok: true; readonly connection: Connection } | { readonly ok: false; readonly message: string }>
}

export type SandboxSettings = {
  readonly kind: SandboxKind
  /** Absolute folder; the one place that a command may write to and find again. */
  readonly workspace: string
  /** The user's home folder. */
  readonly home: string
  /** Our own state, such as ~/.braidclaw. */
  readonly stateHome: string
  /** Read-only inside the workspace, besides the built-in names; absolute or relative to the workspace. */
  readonly protectedPaths: readonly string[]
  /** Absolute, as they are now, with every link followed. In the workspace they can be neither read nor made, elsewhere not read. */
  readonly forbiddenPaths?: () => readonly string[]
  /** Absolute; unreadable wherever they would be seen. */
  readonly secretPaths?: readonly string[]
  /** `example.org`, or `*.example.org` for what lies below it. Empty: no network at all. */
  readonly allowedDomains: readonly string[]
  /** Besides 80 and 443. */
  readonly allowedPorts?: readonly number[]
  /** Needed as soon as a domain is allowed. */
  readonly network?: Network
  readonly limits: Limits
  readonly spawnPlain: Spawn
  readonly log: Log
  /** For tests of the probe only. */
  readonly without?: readonly Layer[]
}

/** `missing` is one whole line; `why` and `remedy` are its parts, where it has such: see install.ts. */
export type Created =
  | { readonly ok: true; readonly sandbox: Sandbox }
  | { readonly ok: false; readonly missing: string; readonly why?: string; readonly remedy?: readonly string[] }
