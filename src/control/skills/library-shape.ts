/** Defines the fields of agent/library.yaml. */

import { z } from 'zod'
import { name } from '../contract/task-shapes.ts'

const line = (most: number) =>
  z
    .string()
    .min(1)
    .max(most)
    .regex(/^[^\p{Cc}]*$/u, 'must be one line without control characters')
const names = z.optional(z.array(name).max(100))

/** Loaded by the reader: schemas are built when the first library is read. */
export function librarySchemas() {
  const skill = z.strictObject({
    name: z.optional(name),
    id: z.optional(name),
    summary: line(300),
    roles: names,
    agents: names,
    invoke: z.optional(z.union([line(1000), z.array(line(1000)).max(50)])),
    content: z.optional(z.string().max(262_144)),
    path: z.optional(line(500)),
    command: z.optional(z.array(line(1000)).min(1).max(50)),
  })
  return { skill, library: z.strictObject({ version: z.optional(z.literal(1)), skills: z.array(skill).max(1000) }) }
}

export type LibraryEntry = z.infer<ReturnType<typeof librarySchemas>['skill']>
