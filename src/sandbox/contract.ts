/** Defines what the rest of the program knows about a sandbox, and what a sandbox needs to know about the machine. */

import type { Change, OutsideGit } from '../runtime/changes.ts'
import type { Log } from '../runtime/port.ts'

export type ChildEnvironment = { readonly [name: string]: string }

/**
 * An absolute path of a folder or file that the command may read. With `from` (a file), the command sees the content of `from` at `path`. A
 * sandbox without mounts starts the program `from` when the command names `path`. With `writable` the command may also write there.
 */
export type ReadablePath = { readonly path: string; readonly from?: string; readonly writable?: true }

/** `argv[0]` is the executable, absolute or on the PATH of `env`; `env` is the complete environment of the child. */
export type SpawnPlan = {
  readonly argv: readonly string[]
  readonly cwd: string
  readonly env: ChildEnvironment
  /** An abort kills every process that the command started. */
  readonly signal: AbortSignal
  /**
   * A text is the whole standard input, without NUL; it ends with a line break. A number is a descriptor that the command reads; the caller
   * closes it when the command has ended. Absent: the input is empty.
   */
  readonly stdin?: string | number
  /** Paths that this command may read in addition to the sandbox's own. */
  readonly readablePaths?: readonly ReadablePath[]
  /**
   * A private view covers this git directory, too, where an overlay of it works; elsewhere it is one of the readable paths. With `index` (a
   * file) the command sees the content of that file as the index. The folders in `hidden` are empty for it.
   */
  readonly outside?: (OutsideGit & { readonly index?: string; readonly hidden: readonly string[] }) | undefined
  /** Makes the workspace read-only for this command. */
  readonly readOnly?: boolean
  /** Absolute real paths in the workspace: a command that works on the workspace itself can write only there. Absent: everywhere. */
  readonly writablePaths?: readonly string[] | undefined
  /**
   * `private`: the command works on a view of the workspace, and its changes stay outside the workspace until somebody applies them. A
   * sandbox that cannot provide a view then refuses the command. `direct`, also when absent: it writes to the workspace itself.
   */
  readonly view?: 'private' | 'direct'
  /** The hosts that this command may reach; absent: none. */
  readonly network?: readonly string[]
  /** Names the owner of the caches that a private view shows. */
  readonly caches?: CacheOwner
  /** The network that the commands of a conversation without hosts share; absent: the command has a loopback interface of its own. */
  readonly loopback?: Pick<Loopback, 'key' | 'words'>
  /** Called before a command on a private view starts, when changes of the workspace are to be written into its view. */
  readonly onView?: (view: RunningView) => void
  onOutput(chunk: Uint8Array, from: 'stdout' | 'stderr'): void
}

/** Caches belong to a conversation, and to what its commands may do (`terms`): what one could write never acts for one that may do less. */
export type CacheOwner = { readonly conversation: string; readonly terms: string }

/** The facts of a command that decide how its sandbox is started ahead of it. */
export type Ahead = Pick<SpawnPlan, 'readablePaths' | 'outside' | 'readOnly' | 'writablePaths' | 'view' | 'caches' | 'loopback'>

/** A network namespace with only a loopback interface: `words` precede a command line that enters it. */
export type Loopback = { readonly key: string; readonly words: readonly string[]; isOpen(): boolean; close(): void }

/** A path of the workspace that changed, and what was there before where that is known. */
export type FollowedPath = Pick<Change, 'path' | 'bytes'> & { readonly was?: Change['before'] | 'nothing' }

/** The view of a command that still runs. */
export type RunningView = {
  /** Writes the present state of these paths into the view. @returns the paths that the command changed itself: they stay as they are */
  follow(paths: readonly FollowedPath[]): readonly string[]
  /** Copies what the command changed so far; it pauses meanwhile. @throws Error that tells a person why it cannot */
  copy(): Promise<PrivateView>
}

/** Holds the changes of a command in its private view. Every process of the command has ended, so they are final. */
export type PrivateView = {
  readonly id: string
  /** The folder of the transaction: `up` holds what the command wrote, `start` is older than everything that changed since it began. */
  readonly folder: string
  /**
   * Every change of the command in the workspace, without caches. Reads the files only once; the signal of the first call stops that.
   * @throws Error that tells a person why the changes cannot be read, for example because there are too many
   */
  changes(signal?: AbortSignal): Promise<readonly Change[]>
  /** Returns the cache folders that the command wrote to, relative to the workspace. They wait beside the changes, and are kept or dropped with them. */
  caches(): Promise<readonly string[]>
  /** Keeps them for later commands of the conversation, because the command changed nothing else. Never rejects. */
  keepCaches(): Promise<void>
  /** Removes the view and everything in it that nobody has moved away. */
  drop(): void
}

/**
 * `code` is 128 + n when signal n ended a confined command. `undone` lists the changes that the sandbox reverted in the workspace, one
 * sentence each. `view` exists if the plan asked for a private view: apply its changes or drop it. `ok: false` means that the command
 * never ran.
 */
export type SpawnResult =
  | {
      readonly ok: true
      readonly code: number | null
      readonly signal?: string
      readonly leftBehind: boolean
      readonly undone?: readonly string[]
      readonly mode?: 'transaction' | 'direct'
      readonly view?: PrivateView
      /** Why the sandbox ended the command: it used too much. */
      readonly stopped?: string
    }
  | { readonly ok: false; readonly message: string }

/** Resolves when the child and every process that it started have ended; never rejects. */
export type Spawn = (plan: SpawnPlan) => Promise<SpawnResult>

/** A child process that is spoken to in lines over its stdin and stdout. */
export type LineProcess = {
  /** Writes one line after the other, also when the pipe is full. @returns false when the process ended first */
  send(line: string): Promise<boolean>
  /** Counts the printed bytes from zero again, because something new was asked. */
  expect(): void
  /** Ends the process with everything that it started. Only the first reason counts. */
  stop(why: string): void
  /** Says why the process is over; undefined while it runs. */
  over(): string | undefined
  /** Resolves when every process has ended. */
  readonly ended: Promise<void>
}

/** `onOver` is called once, when the process ended or was stopped: `why` is the end of a sentence. */
export type LineListener = { onLine(line: string): void; onOver(why: string): void }

export type SandboxName = 'bubblewrap' | 'landlock' | 'none'

/** `auto` selects bubblewrap. Landlock protects less, and `none` protects nothing: the user must choose either explicitly. */
export type SandboxKind = 'auto' | SandboxName

/** `why` is the end of a sentence for a person. */
export type PrivateViews = { readonly ok: true } | { readonly ok: false; readonly why: string }

export type Sandbox = {
  readonly name: SandboxName
  /** @returns the layers between a command and the machine, one line each */
  describe(): string[]
  readonly spawn: Spawn
  /** Tells whether commands can have private views of the workspace now. A plan with `view: 'private'` is refused when they cannot. */
  privateViews(): Promise<PrivateViews>
  /** Opens a network that commands can share, see SpawnPlan. @returns why there can be none, as the end of a sentence */
  openLoopback?(): Promise<Loopback | string>
  /** Starts a sandbox for the next command, which is judged but not recorded yet, so that it does not wait. Cheap to call again. */
  warm?(plan: Ahead): void
  /** Releases what the sandbox keeps outside (control group, filter file, proxy socket). No spawn may follow. */
  close?(): void
}

export type Limits = {
  /** Data of one process. */
  readonly memoryBytes: number
  /** Memory of all processes together, with the files in /tmp; as much as one process when absent. */
  readonly totalMemoryBytes?: number
  /** Bytes that all processes together may write to disk. */
  readonly diskBytes?: number
  readonly processes: number
  /** Longest file a command may write. */
  readonly fileBytes: number
  /** Processor time of one process. */
  readonly cpuSeconds: number
}

/** Layers that a test may leave out to check that the probe notices. */
export const layers = [
  'mount namespace',
  'protected paths',
  'hidden files',
  'unread files',
  'refused programs',
  'small /etc',
  'network namespace',
  'pid namespace',
  'ipc namespace',
  'nested namespaces',
  'seccomp',
  'limits',
  'environment',
] as const

export type Layer = (typeof layers)[number]

/** One stream per direction; `pipeTo` between two connections keeps the back-pressure. */
export type ByteConnection = { readonly readable: ReadableStream<Uint8Array>; readonly writable: WritableStream<Uint8Array> }

/** Network access to the listed hosts. `dial` checks the host again, resolves it and connects to exactly the address that it checked. */
export type Network = {
  listen(path: string, accept: (connection: ByteConnection) => void): { stop(): void }
  dial(target: {
    readonly host: string
    readonly port: number
  }): Promise<{ readonly ok: true; readonly connection: ByteConnection } | { readonly ok: false; readonly message: string }>
}

/** `settings` by key, such as `core.eol`, and the contents of the user's own files for every repository. */
export type GitUser = {
  readonly name?: string
  readonly email?: string
  readonly settings?: { readonly [key: string]: string }
  readonly files?: { readonly [kind in 'ignore' | 'attributes']?: string }
}

export type SandboxSettings = {
  readonly kind: SandboxKind
  /** Absolute path of the only folder where a command can write files that persist. */
  readonly workspace: string
  /** The user's home folder. */
  readonly home: string
  /** Folder of our own state, such as ~/.braidclaw. */
  readonly stateHome: string
  /** Paths that are read-only inside the workspace, in addition to the built-in names; absolute or relative to the workspace. */
  readonly protectedPaths: readonly string[]
  /**
   * Current absolute paths with every symbolic link followed. Commands can neither read nor create them in the workspace, and cannot read
   * them elsewhere.
   */
  readonly forbiddenPaths?: () => readonly string[]
  /** Patterns of files in the workspace that no command can read, if they exist when it starts (security/targets/path.ts). */
  readonly forbiddenReads?: readonly string[]
  /** Absolute paths that no command can read. */
  readonly secretPaths?: readonly string[]
  /** Commands find this in /etc/gitconfig, where the settings of every repository take precedence. */
  readonly gitUser?: GitUser
  /** The user's PATH: commands can read its folders below the home folder, too. */
  readonly userPath?: string
  /** Names of programs that refuse to run inside, whatever starts them. */
  readonly forbiddenCommands?: readonly string[]
  /** `example.org`, or `*.example.org` for its subdomains. An empty list means no network at all. */
  readonly allowedDomains: readonly string[]
  /** Ports besides 80 and 443. */
  readonly allowedPorts?: readonly number[]
  /** Required when a domain is allowed. */
  readonly network?: Network
  readonly limits: Limits
  /** A trial of this kind of sandbox succeeded here, and nothing has changed since (trial-key.ts). */
  readonly tried?: boolean
  readonly spawnPlain: Spawn
  readonly log: Log
  /** Layers to leave out; only for tests of the probe. */
  readonly without?: readonly Layer[]
}

/** `missing` is one complete line; `why` and `remedy` are its parts where it has them: see install.ts. */
export type Created =
  | { readonly ok: true; readonly sandbox: Sandbox }
  | { readonly ok: false; readonly missing: string; readonly why?: string; readonly remedy?: readonly string[] }
