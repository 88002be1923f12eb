// Short names for the service's objects.

import type { components } from './schema';

type Schemas = components['schemas'];
export type Cluster = Schemas['ClusterPage']['rows'][number];
export type ClusterDetail = Schemas['ClusterDetail'];
export type FitCurves = Schemas['FitCurves'];
export type FitCurve = Schemas['FitCurve'];
export type Job = Schemas['Job'];
export type Links = Schemas['Links'];
export type Messages = Schemas['Messages'];
export type PhaseMap = Schemas['PhaseMap'];
export type PlanAnswer = Schemas['PlanAnswer'];
export type PlanDetail = Schemas['PlanDetail'];
export type PlanReply = Schemas['PlanReply'];
export type PlanRequest = Schemas['PlanRequest'];
export type PlanSummary = Schemas['PlanSummary'];
export type Probe = Schemas['Probe'];
export type ProfileSummary = Schemas['ProfileSummary'];
export type RankingEntry = Schemas['RankingEntry'];
export type RunDetail = Schemas['RunDetail'];
export type RunSummary = Schemas['RunSummary'];
export type Scaling = Schemas['Scaling'];
export type ServerSweep = Schemas['ServerSweep'];
export type Timeline = Schemas['Timeline'];
export type Verified = Schemas['Verified'];
export type Version = Schemas['Version'];
