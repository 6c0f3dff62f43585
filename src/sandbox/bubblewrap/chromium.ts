/** Starts the person's own Chromium for tools and checks: in namespaces of its own, without a network, with everything it writes in memory. */

import { realpathSync } from 'node:fs'
import { dirname } from 'node:path'
import type { Browser } from 'playwright-core'
import { errorText } from '../../kit/errors.ts'
import { notInstalled } from '../install.ts'
import { fixedPath } from '../trial-key.ts'
import { namespaceArguments } from './namespaces.ts'

const names = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable', 'chrome']

/**
 * Returns the absolute path of Chromium or Chrome: that of the variable CHROMIUM, else the first one in the system's folders. Undefined when
 * there is none; nothing is ever downloaded.
 */
export function findChromium(env: { readonly [name: string]: string | undefined }): string | undefined {
  if (env.CHROMIUM) return Bun.which(env.CHROMIUM) ?? undefined
  return names.map((name) => Bun.which(name, { PATH: fixedPath })).find((path) => path !== null) ?? undefined
}

const switches = [
  ...'--headless --remote-debugging-pipe --user-data-dir=/tmp/profile --no-first-run --no-default-browser-check --disable-gpu'.split(' '),
  ...'--hide-scrollbars --mute-audio --disable-dev-shm-usage --no-pings --disable-background-networking --disable-extensions'.split(' '),
  ...'--disable-component-update --disable-sync --enable-blink-features=ComputedAccessibilityInfo'.split(' '),
  '--js-flags=--max-old-space-size=512',
]

const scratchBytes = 512 * 1024 * 1024

/** How long Chromium may take to start, in milliseconds. */
const startMs = 30_000

/**
 * Starts it without a window. Its protocol runs over two pipes, so that nobody else can steer it, and its requests are answered by this
 * process. @throws Error that says what is missing
 */
export async function openBrowser(program: string): Promise<Browser> {
  const bubblewrap = Bun.which('bwrap', { PATH: fixedPath })
  if (bubblewrap === null) throw new Error(`a browser runs only in the sandbox: ${notInstalled.missing}`)
  const { chromium } = await library()
  // Chromium refuses its own sandbox for root; the namespaces around it stay.
  const own = process.geteuid?.() === 0 ? ['--no-sandbox'] : []
  try {
    return await chromium.launch({
      executablePath: bubblewrap,
      ignoreDefaultArgs: true,
      args: [...viewWords(program), '--', program, ...switches, ...own, 'about:blank'],
      env: {},
      timeout: startMs,
      // The program that started this process decides what its signals do.
      ...{ handleSIGINT: false, handleSIGTERM: false, handleSIGHUP: false },
    })
  } catch (error) {
    throw new Error(`Chromium did not start: ${errorText(error).split('\n')[0]}`)
  }
}

async function library(): Promise<typeof import('playwright-core')> {
  try {
    return await import('playwright-core')
  } catch (error) {
    const why = errorText(error).split('\n')[0]
    throw new Error(`playwright-core, which drives a browser, cannot be loaded: ${why}; run BraidClaw from a checkout (npm ci)`)
  }
}

const systemFolders = [
  ...['/usr', '/bin', '/lib', '/lib64', '/opt', '/nix/store', '/gnu/store'],
  ...['/etc/fonts', '/etc/alternatives', '/etc/ld.so.cache', '/etc/chromium', '/etc/chromium.d'],
]

/** Chromium sees the system's programs and fonts, and no file of the person. */
function viewWords(program: string): string[] {
  return [
    // Its own sandbox makes namespaces, too.
    ...namespaceArguments(new Set(['nested namespaces'])),
    ...[...systemFolders, dirname(realpathSync(program))].flatMap((path) => ['--ro-bind-try', path, path]),
    ...['--proc', '/proc', '--dev', '/dev', '--size', String(scratchBytes), '--tmpfs', '/tmp', '--tmpfs', '/dev/shm'],
    ...['--remount-ro', '/', '--chdir', '/tmp', '--clearenv', '--setenv', 'HOME', '/tmp', '--setenv', 'PATH', fixedPath],
    ...['--setenv', 'LANG', 'C.UTF-8'],
  ]
}
