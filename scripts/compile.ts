/** Compiles one entry file to one executable with reproducible bytes, which reads no configuration from its working directory. */

import { mkdirSync, mkdtempSync, renameSync, rmSync, statSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'

/**
 * A default executable loads `.env` and runs the `preload` of a `bunfig.toml` from the working directory. Splitting keeps lazy imports out
 * of the start; one bundled file would take 100 ms to load. Compilation to machine code waits a hundred times longer than usual: a turn is
 * 5 to 7 % faster, and a command that computes for a second is as fast as before.
 */
const FLAGS = [
  '--compile',
  '--minify',
  '--bytecode',
  '--format=esm',
  '--splitting',
  '--compile-jit-policy=100',
  '--no-compile-autoload-dotenv',
  '--no-compile-autoload-bunfig',
  '--compile-autoload-package-json',
]

export type Compiled = { readonly ok: true; readonly bytes: number } | { readonly ok: false; readonly message: string }

/**
 * Builds beside `outfile` and renames, so that a failed build leaves the old file and only a regular file is ever replaced. The executable
 * contains its name: the same entry under another name gives other bytes.
 */
export async function compile({ entry, outfile }: { readonly entry: string; readonly outfile: string }): Promise<Compiled> {
  const old = statSync(outfile, { throwIfNoEntry: false })
  if (old !== undefined && !old.isFile()) return { ok: false, message: `${outfile} is no regular file; choose another name` }
  mkdirSync(dirname(outfile), { recursive: true })
  const scratch = mkdtempSync(join(dirname(outfile), '.build-'))
  const built = join(scratch, basename(outfile))
  try {
    const child = Bun.spawn([process.execPath, '--config=/dev/null', '--no-env-file', 'build', ...FLAGS, entry, `--outfile=${built}`], {
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    const [stdout, stderr, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited])
    if (code !== 0) return { ok: false, message: `bun build ended with exit code ${code}:\n${stdout}${stderr}` }
    renameSync(built, outfile)
    return { ok: true, bytes: statSync(outfile).size }
  } finally {
    rmSync(scratch, { recursive: true, force: true })
  }
}
