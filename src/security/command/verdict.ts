/** What goes into a judgement of one shell command and what comes out of it. */

export type CommandPolicy = {
  /** Basenames that may run at medium risk. */
  readonly allow: readonly string[]
  /** Basenames that are blocked wherever they stand as a command. */
  readonly forbidden: readonly string[]
  /** Where the command would start: absolute, inside the workspace. */
  readonly cwd: string
  readonly home: string
  /**
   * The path gate. Paths are absolute or relative to `cwd`; `~` is already expanded. `run` is for a program's own path. `real` where links
   * lead elsewhere. Must not throw.
   */
  path(
    path: string,
    access: 'read' | 'write' | 'run',
    cwd: string,
  ): { readonly ok: true; readonly real?: string } | { readonly ok: false; readonly rule: string; readonly reason: string }
  /** Basename to absolute executable, looked up once in a fixed PATH; undefined when there is none. Must not throw. */
  resolve(name: string): string | undefined
}

/**
 * What would be executed. `argv` is spawned without a shell (`argv[0]` is the name as written, `executable` the file);
 * `script` is printed from the syntax tree, never the given text, and is run as `bash --noprofile --norc -c`.
 */
export type CommandPlan =
  | { readonly kind: 'argv'; readonly argv: readonly string[]; readonly executable: string }
  | { readonly kind: 'script'; readonly script: string }

/**
 * `blocked` is refused at every level of autonomy. `run` at `medium`: everything in it is allow-listed and clean; at `high`: something is
 * not allow-listed, not readable before it runs, or over a limit. Without a `plan` there is nothing that may be executed.
 */
export type CommandVerdict = {
  readonly verdict: 'run' | 'blocked'
  readonly risk: 'medium' | 'high'
  readonly rule: string
  readonly reason: string
  readonly plan: CommandPlan | undefined
  /** What really runs, wrappers removed, with the sub-command where there is one: `git status`. */
  readonly executables: readonly string[]
  /** Absolute paths it would write, as far as they are known. */
  readonly writes: readonly string[]
}
