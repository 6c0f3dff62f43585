/** Defines the input and the verdict of judging one shell command. */

export type CommandPolicy = {
  /** Basenames that may run at medium risk. */
  readonly allow: readonly string[]
  /** Basenames that are blocked wherever they appear as a command. */
  readonly forbidden: readonly string[]
  /** The directory where the command would start: absolute, inside the workspace. */
  readonly cwd: string
  readonly home: string
  /** The command gets a /dev and a /tmp of its own. */
  readonly sandboxed?: boolean
  /**
   * The path gate. Paths are absolute or relative to `cwd`; `~` is already expanded. `run` is for the path of a program. `real` is set
   * where links lead to another path. Must not throw.
   */
  path(
    path: string,
    access: 'read' | 'write' | 'run',
    cwd: string,
  ): { readonly ok: true; readonly real?: string } | { readonly ok: false; readonly rule: string; readonly reason: string }
  /** Basename to absolute executable, looked up once in a fixed PATH; undefined when there is none. Must not throw. */
  resolve(name: string): string | undefined
  /** Tells whether a regular file is at this absolute path, which `path` allows. Absent: no file is known. Must not throw. */
  isFile?(path: string): boolean
}

/**
 * The plan that would be executed. `argv` is spawned without a shell (`argv[0]` is the name as written, `executable` the file); `script`
 * is printed from the syntax tree, never the given text, and runs as `bash --noprofile --norc -c`.
 */
export type CommandPlan =
  | { readonly kind: 'argv'; readonly argv: readonly string[]; readonly executable: string }
  | { readonly kind: 'script'; readonly script: string }

/**
 * `blocked` is refused at every level of autonomy. `run` at `medium`: every part is allow-listed and clean. `run` at `high`: a part is not
 * allow-listed, not readable before it runs, or over a limit. Without a `plan` nothing may be executed.
 */
export type CommandVerdict = {
  readonly verdict: 'run' | 'blocked'
  readonly risk: 'medium' | 'high'
  readonly rule: string
  readonly reason: string
  readonly plan: CommandPlan | undefined
  /** The programs that really run, without wrappers, with the sub-command where there is one: `git status`. */
  readonly executables: readonly string[]
  /** Absolute paths that the command would write, as far as they are known. */
  readonly writes: readonly string[]
  /** Proved to change nothing. */
  readonly readOnly: boolean
  /** Absolute paths of the files whose content decides what runs: scripts, makefiles, package.json. */
  readonly runs: readonly string[]
  /** The hosts that it names or is known to need. */
  readonly hosts: readonly string[]
}
