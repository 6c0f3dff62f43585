/** Compiles one entry file to one executable with reproducible bytes, which reads no configuration from its working directory. */

import { mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
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

/**
 * Variables of the environment that make an executable of Bun run foreign code before any line of ours: it is Bun itself, it takes options
 * such as `--preload`, or it waits for a debugger. bin/braidclaw unsets them; the executable has them under other names. The first one
 * turns up in one place of the file; more of them would mean that Bun reads it elsewhere too.
 */
const doors = [
  { name: 'BUN_BE_BUN', once: true },
  { name: 'BUN_OPTIONS', once: false },
  { name: 'BUN_INSPECT', once: false },
]

/** On macOS the file stays as it is, because changed bytes do not fit its signature. */
function closeDoors(path: string): { readonly ok: true } | { readonly ok: false; readonly message: string } {
  if (process.platform === 'darwin') return { ok: true }
  const renamed = withoutDoors(readFileSync(path))
  if (!renamed.ok) return { ok: false, message: `${path}: ${renamed.message}` }
  writeFileSync(path, renamed.bytes)
  return { ok: true }
}

export type Renamed = { readonly ok: true; readonly bytes: Buffer } | { readonly ok: false; readonly message: string }

/**
 * Renames these variables in `bytes`, changes nothing else and keeps the length. The names follow from the bytes: each release has others,
 * and who builds the same sources twice gets the same file.
 */
export function withoutDoors(bytes: Buffer): Renamed {
  const digest = new Bun.CryptoHasher('sha256').update(bytes).digest('hex')
  for (const { name, once } of doors) {
    const places = placesOf(name, bytes)
    if (places.length === 0 || (once && places.length > 1))
      return {
        ok: false,
        message: `${name} must occur ${once ? 'exactly once' : 'at least once'} to be renamed, but occurs ${places.length} times`,
      }
    const letters = new Bun.CryptoHasher('sha256').update(digest + name).digest()
    const other = Array.from(letters.subarray(0, name.length), (byte) => String.fromCharCode(65 + (byte % 26))).join('')
    for (const at of places) bytes.write(other, at, 'latin1')
  }
  return { ok: true, bytes }
}

function placesOf(name: string, bytes: Buffer): number[] {
  const places: number[] = []
  for (let at = bytes.indexOf(name); at >= 0; at = bytes.indexOf(name, at + name.length)) places.push(at)
  return places
}

export type CompileOptions = {
  readonly entry: string
  readonly outfile: string
  /** The Bun that runs it on another platform; default: the one that builds. */
  readonly runtime?: { readonly path: string; readonly target: string } | undefined
}

export type Compiled = { readonly ok: true; readonly bytes: number } | { readonly ok: false; readonly message: string }

/**
 * Builds beside `outfile` and renames, so that a failed build leaves the old file and only a regular file is ever replaced. The executable
 * contains its name: the same entry under another name gives other bytes.
 */
export async function compile({ entry, outfile, runtime }: CompileOptions): Promise<Compiled> {
  const old = statSync(outfile, { throwIfNoEntry: false })
  if (old !== undefined && !old.isFile()) return { ok: false, message: `${outfile} is no regular file; choose another name` }
  mkdirSync(dirname(outfile), { recursive: true })
  const scratch = mkdtempSync(join(dirname(outfile), '.build-'))
  const built = join(scratch, basename(outfile))
  const platform = runtime ? [`--compile-executable-path=${runtime.path}`, `--target=${runtime.target}`] : []
  const bun = [process.execPath, '--config=/dev/null', '--no-env-file', 'build', ...FLAGS, ...platform, entry, `--outfile=${built}`]
  try {
    const child = Bun.spawn(bun, { stdio: ['ignore', 'pipe', 'pipe'] })
    const [stdout, stderr, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited])
    if (code !== 0) return { ok: false, message: `bun build ended with exit code ${code}:\n${stdout}${stderr}` }
    const closed = closeDoors(built)
    if (!closed.ok) return closed
    renameSync(built, outfile)
    return { ok: true, bytes: statSync(outfile).size }
  } finally {
    rmSync(scratch, { recursive: true, force: true })
  }
}
