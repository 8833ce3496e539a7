/** The API's answers by short names; the OpenAPI document is where they are defined. */
import type { components } from "./schema";

type Schemas = components["schemas"];

export type Status = Schemas["Run"]["status"];
export type Run = Schemas["Run"];
export type ListedRun = Schemas["ListedRun"];
export type RunPage = Schemas["RunPage"];
export type RunDetail = Schemas["RunDetail"];
export type Sums = Schemas["Sums"];
export type Phase = Schemas["Phase"];
export type Phases = Schemas["Phases"];
export type Preview = Schemas["Preview"];
export type Call = Schemas["Call"];
export type Result = Schemas["Result"];
export type WholeResult = Schemas["WholeResult"];
export type Logs = Schemas["Logs"];
export type Payload = Schemas["Payload"];
export type Link = Schemas["Link"];
export type Insights = Schemas["Insights"];
export type PipelineFigures = Schemas["PipelineFigures"];
export type PhaseFigures = Schemas["PhaseFigures"];
export type Interval = Schemas["Interval"];
export type Comparison = Schemas["Comparison"];
export type Change = Schemas["Change"];
export type Problem = Schemas["Problem"];
