/** The example of seed 001, word for word, and where it is written. */

import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Nest } from '../support/cli.ts'

export const dailyCheck = `name = "daily-check"
description = "Run a daily workspace check"

[[steps]]
id = "list"
kind = "tool"
tool = "file_list"
args = { path = "." }

[[steps]]
id = "summarize"
kind = "agent"
prompt = "Summarize the file list from the previous step."

[[steps]]
id = "approval"
kind = "approval"
prompt = "Continue to write report?"

[[steps]]
id = "write"
kind = "tool"
tool = "file_write"
args = { path = "daily-check.txt", content_from = "summarize" }
`

/** Writes `sops/NAME/SOP.toml` under the home, or under another folder of it. */
export function writeSop(at: Nest, name: string, text: string, folder = 'sops'): string {
  const path = join(at.home, '.braidclaw', folder, name, 'SOP.toml')
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, text)
  return path
}
