"""The redbook's statements, and how large a sample is drawn."""

SIX_TABLES = (
    "select platform,datasource,filename from metaocean,t_front,t_center,t_car,t_bicycle,"
    "t_pedestrian where t_front.fkey=metaocean.fkey and int(t_front.value)=1 and "
    "t_center.fkey=metaocean.fkey and int(t_center.value)=1 and t_car.fkey=metaocean.fkey and "
    "int(t_car.value)>=10000 and int(t_car.value)<=20000 and t_bicycle.fkey=metaocean.fkey and "
    "int(t_bicycle.value)>=3000 and int(t_bicycle.value)<=5000 and "
    "t_pedestrian.fkey=metaocean.fkey and int(t_pedestrian.value)>=5000 and "
    "int(t_pedestrian.value)<=6000"
)
SHARE = (
    "select sum(int(t_rd_normal_street.value)) / "
    "((count(t_rd_normal_street.value)*1920*1208)/100) from t_rd_normal_street with ur"
)
VIEW = "select fkey from metaocean_view where front=1 and center=1 and bicycle>=900 and car<=1000"
SAMPLE = 5_000
