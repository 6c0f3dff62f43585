/** Starts the person's own Chromium for tools and checks: in namespaces of its own, without a network, with everything it writes in memory. */

import { closeSync, existsSync, mkdtempSync, openSync, readSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { Browser } from 'playwright-core'
import { errorText } from '../../kit/errors.ts'
import { notInstalled } from '../install.ts'
import { fixedPath } from '../trial-key.ts'
import { namespaceArguments } from './namespaces.ts'

/** Where packages install the program itself; the commands in /usr/bin are often scripts that read files which a sandbox hides. */
const usualPrograms = [
  '/usr/lib/chromium/chromium',
  '/usr/lib64/chromium-browser/chromium-browser',
  '/usr/lib/chromium-browser/chromium-browser',
  '/opt/google/chrome/chrome',
  '/opt/chromium.org/chromium/chromium',
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
]

/**
 * Returns the absolute path of Chromium or Chrome: the variable CHROMIUM, or the first usual one that is there. Undefined when there is none;
 * nothing is ever downloaded.
 */
export function findChromium(env: { readonly [name: string]: string | undefined }): string | undefined {
  const named = env.CHROMIUM
  return (named ? [named] : usualPrograms).find(isProgram)
}

/** Tells whether the file is a program in machine code, not a script. */
function isProgram(path: string): boolean {
  try {
    const file = openSync(path, 'r')
    try {
      const begin = Buffer.alloc(4)
      return readSync(file, begin, 0, 4, 0) === 4 && begin.toString('latin1') === '\x7fELF'
    } finally {
      closeSync(file)
    }
  } catch {
    return false
  }
}

export type OpenBrowser = { readonly browser: Browser; close(): Promise<void> }

const scratchBytes = 512 * 1024 * 1024

/** How long Chromium may take to start, in milliseconds. */
const startMs = 30_000

/**
 * Starts it without a window. The process that drives it talks to it through two pipes, and answers its requests itself. @throws Error that
 * says what is missing
 */
export async function openBrowser(program: string): Promise<OpenBrowser> {
  const bubblewrap = Bun.which('bwrap', { PATH: fixedPath })
  if (bubblewrap === null) throw new Error(`a browser runs only in the sandbox: ${notInstalled.missing}`)
  const { chromium } = await library()
  const folder = mkdtempSync(join(tmpdir(), 'braidclaw-browser-'))
  const remove = () => rmSync(folder, { recursive: true, force: true })
  try {
    const launcher = join(folder, 'chromium')
    const words = [bubblewrap, ...viewWords(program), '--', realpathSync(program)].map((word) => `'${word.replaceAll("'", "'\\''")}'`)
    writeFileSync(launcher, `#!/bin/sh\nexec ${words.join(' ')} "$@"\n`, { mode: 0o700 })
    const browser = await chromium.launch({
      executablePath: launcher,
      // Chromium refuses its own sandbox for root; the namespaces around it stay.
      chromiumSandbox: process.geteuid?.() !== 0,
      env: {},
      timeout: startMs,
      args: ['--disable-gpu', '--disable-background-networking', '--js-flags=--max-old-space-size=512'],
      ...{ handleSIGINT: false, handleSIGTERM: false, handleSIGHUP: false },
    })
    return { browser, close: () => browser.close().finally(remove) }
  } catch (error) {
    remove()
    throw new Error(`Chromium did not start: ${errorText(error).split('\n')[0]}`)
  }
}

async function library(): Promise<typeof import('playwright-core')> {
  try {
    return await import('playwright-core')
  } catch (error) {
    const why = errorText(error).split('\n')[0]
    throw new Error(`a browser needs the package playwright-core, which an installation by npm has and a single executable lacks: ${why}`)
  }
}

/** Chromium sees the system's programs and fonts, and no file of the person. */
function viewWords(program: string): string[] {
  const folder = dirname(realpathSync(program))
  const links = ['bin', 'sbin', 'lib', 'lib32', 'lib64'].filter((name) => existsSync(`/${name}`))
  return [
    // Its own sandbox makes namespaces, too.
    ...namespaceArguments(new Set(['nested namespaces'])),
    ...['--ro-bind', '/usr', '/usr', ...links.flatMap((name) => ['--ro-bind', `/${name}`, `/${name}`])],
    ...['fonts', 'ld.so.cache', 'alternatives'].flatMap((name) => ['--ro-bind-try', `/etc/${name}`, `/etc/${name}`]),
    ...(folder.startsWith('/usr/') ? [] : ['--ro-bind', folder, folder]),
    ...['--proc', '/proc', '--dev', '/dev', '--size', String(scratchBytes), '--tmpfs', '/tmp', '--tmpfs', '/dev/shm'],
    ...['--clearenv', '--setenv', 'HOME', '/tmp', '--setenv', 'PATH', '/usr/bin:/bin', '--setenv', 'LANG', 'C.UTF-8', '--chdir', '/tmp'],
  ]
}
